package event

import (
	"fmt"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// size is a number of bytes, written as a JSON number or, by Ceph according to
// its documentation, as a string. MinIO writes -1 if it does not know the size, for
// an object whose metadata claims a broken encryption; any user can upload one. It is
// read as 0, which is also the size of events that carry none.
type size int64

func (s *size) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	v, err := dec.ReadValue()
	if err != nil {
		return err
	}
	switch v.Kind() {
	case 'n':
		*s = 0
		return nil
	case '"':
		v = v[1 : len(v)-1]
	}
	if string(v) == "-1" {
		*s = 0
		return nil
	}
	n, err := strconv.ParseUint(string(v), 10, 63)
	if err != nil {
		return fmt.Errorf("size %s is not a number of bytes", quoteShort(string(v)))
	}
	*s = size(n)
	return nil
}

// parseTime reads RFC 3339, with the fraction or without, and the +0000 of
// some releases of Ceph. An absent time is the zero one: it is never needed for
// order. A wrong one is an error, because then the rest is doubtful too.
func parseTime(s string) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05Z0700"} {
		t, err := time.Parse(layout, s)
		// An offset can push the last hours of 9999 into a year that RFC 3339
		// has no digits for, and no ledger could write it.
		if t = t.UTC(); err == nil && t.Year() >= 1 && t.Year() <= 9999 {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("time %s is not in RFC 3339", quoteShort(s))
}

// unquote takes the quotes off an ETag that is written as in HTTP.
func unquote(etag string) string {
	if n := len(etag); n >= 2 && etag[0] == '"' && etag[n-1] == '"' {
		return etag[1 : n-1]
	}
	return etag
}
