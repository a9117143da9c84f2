package event

import (
	"fmt"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// size is a number of bytes: a JSON number, or a string as in Ceph's documentation. MinIO writes
// -1 if it does not know the size, for an object whose metadata claims a broken encryption; any
// user can upload such an object. size treats -1 as 0, like an absent size.
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

// parseTime parses RFC 3339, with or without a fraction, and the +0000 of some Ceph releases. An
// absent time gives the zero time, because order never depends on it. An invalid time is an
// error, because the rest of the record is then doubtful.
func parseTime(s string) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05Z0700"} {
		t, err := time.Parse(layout, s)
		// The UTC offset can move the last hours of the year 9999 into a year that RFC 3339
		// cannot write, and that no ledger could store.
		if t = t.UTC(); err == nil && t.Year() >= 1 && t.Year() <= 9999 {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("time %s is not in RFC 3339", quoteShort(s))
}

// unquote removes the quotes of an ETag in HTTP form.
func unquote(etag string) string {
	if n := len(etag); n >= 2 && etag[0] == '"' && etag[n-1] == '"' {
		return etag[1 : n-1]
	}
	return etag
}
