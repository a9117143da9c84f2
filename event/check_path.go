package event

import (
	"errors"
	"strings"
)

// CheckPath returns an error if not every store lists the object under its own key:
// if any of the key's parts between slashes is empty, "." or "..". Amazon S3 knows no
// folders, and takes all of these as they are. MinIO drops slashes at the beginning,
// and versitygw cleans the path: it lists an object that was written and read under
// such a key under another one.
func (o Object) CheckPath() error {
	for part := range strings.SplitSeq(o.Key, "/") {
		if part == "" || part == "." || part == ".." {
			return errUncleanKey
		}
	}
	return nil
}

var errUncleanKey = errors.New(`between slashes, a part of the key is empty, "." or "..", and some stores list such a key under another one: choose another key`)
