package bucket

import "strings"

// IsPath reports that every store lists the object under its own key: that none of
// the key's parts between slashes is empty, "." or "..". Amazon S3 knows no folders,
// and takes all of these as they are. MinIO drops slashes at the beginning, and
// versitygw cleans the path: what is written and read under such a key is listed
// under another.
func (r Ref) IsPath() bool {
	for part := range strings.SplitSeq(r.Key, "/") {
		if part == "" || part == "." || part == ".." {
			return false
		}
	}
	return true
}
