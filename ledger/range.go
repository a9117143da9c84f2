package ledger

import "strings"

// Range selects rows for Scan. The zero Range selects all.
type Range struct {
	Pipeline string // empty: all
	Bucket   string // empty: all; if set, requires Pipeline
	Prefix   string // prefix of Key; requires Bucket
	After    RowKey // exclusive
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
