package event

import (
	"fmt"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// MinIO writes -1 for an object whose metadata claims a broken encryption, which any user can upload. It
// counts as 0. Ceph documents sizes as strings.
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

// An absent time is valid, because order never depends on it. An invalid time makes the rest of the record
// doubtful.
func parseTime(s string) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05Z0700"} {
		t, err := time.Parse(layout, s)
		// The UTC offset can move a time out of the years that RFC 3339 can write and a ledger can store.
		if t = t.UTC(); err == nil && t.Year() >= 1 && t.Year() <= 9999 {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("time %s is not in RFC 3339", quoteShort(s))
}

func unquote(etag string) string {
	if n := len(etag); n >= 2 && etag[0] == '"' && etag[n-1] == '"' {
		return etag[1 : n-1]
	}
	return etag
}
