package event

import (
	"errors"
	"strings"
)

// CheckPath returns an error if some stores list the object under another key: if any part of the
// key between slashes is empty, "." or "..". Amazon S3 has no folders and accepts such keys.
// MinIO drops slashes at the beginning. versitygw cleans the path: an object that is written and
// read under such a key is listed under another one.
func (o Object) CheckPath() error {
	for part := range strings.SplitSeq(o.Key, "/") {
		if part == "" || part == "." || part == ".." {
			return errUncleanKey
		}
	}
	return nil
}

var errUncleanKey = errors.New(`a part of the key between slashes is empty, "." or "..", and some stores list such a key under another name: choose another key`)
