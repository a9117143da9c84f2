package ledger

import "strings"

// Range selects rows for Scan. The zero Range is everything.
type Range struct {
	Pipeline string // empty: all
	Bucket   string // empty: all; needs Pipeline
	Prefix   string // of Key; needs Bucket
	After    RowKey // exclusive lower bound; the zero RowKey is none
}

// Match reports whether the range holds k.
func (r *Range) Match(k RowKey) bool {
	switch {
	case r.Pipeline != "" && r.Pipeline != k.Pipeline, r.Bucket != "" && r.Bucket != k.Bucket:
		return false
	case !strings.HasPrefix(k.Key, r.Prefix):
		return false
	}
	return r.After == (RowKey{}) || k.Compare(r.After) > 0
}

// Bounds returns the first key that the range may hold, and the first after it
// that it may not; nil: there is no such key. A store that orders keys reads what
// is between.
func (r *Range) Bounds() (from RowKey, to *RowKey) {
	from = RowKey{Pipeline: r.Pipeline, Bucket: r.Bucket, Key: r.Prefix}
	if r.After != (RowKey{}) && r.After.Compare(from) >= 0 {
		from = r.After.Next()
	}
	switch end, ok := beyond(r.Prefix); {
	case r.Pipeline == "":
		return from, nil
	case r.Bucket == "":
		return from, &RowKey{Pipeline: r.Pipeline + "\x00"}
	case !ok:
		return from, &RowKey{Pipeline: r.Pipeline, Bucket: r.Bucket + "\x00"}
	default:
		return from, &RowKey{Pipeline: r.Pipeline, Bucket: r.Bucket, Key: end}
	}
}

// Next returns the key that directly follows k.
func (k RowKey) Next() RowKey {
	k.VersionID += "\x00"
	return k
}

// beyond returns the first string after all that begin with prefix. There is
// none where the prefix has no byte below 0xff.
func beyond(prefix string) (string, bool) {
	for i := len(prefix) - 1; i >= 0; i-- {
		if prefix[i] < 0xff {
			return prefix[:i] + string([]byte{prefix[i] + 1}), true
		}
	}
	return "", false
}
