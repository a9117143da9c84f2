package event

import (
	"errors"
	"strings"
)

// CheckPath rejects a key that some stores list under another one: any part between slashes is empty, "."
// or "..". MinIO drops slashes at the beginning, and versitygw cleans the path. Amazon S3 accepts such
// keys.
func (o Object) CheckPath() error {
	for part := range strings.SplitSeq(o.Key, "/") {
		if part == "" || part == "." || part == ".." {
			return errUncleanKey
		}
	}
	return nil
}

var errUncleanKey = errors.New(`a part of the key between slashes is empty, "." or "..", and some stores list such a key under another name: choose another key`)
