package dashboard

import (
	"crypto/sha256"
	"encoding/base64"
	"net/url"
	"strconv"
	"time"
)

// checksum is the number of bytes of a checksum in a cursor. It detects damage. A cursor grants nothing, so
// that it needs no signature, and a URL works at every process.
const checksum = 6

func encodeCursor(p Position) string {
	q := keyValues(p.RowKey)
	if !p.Due.IsZero() {
		q.Set("due", strconv.FormatInt(p.Due.UnixMilli(), 10))
	}
	text := q.Encode()
	sum := sha256.Sum256([]byte(text))
	return base64.RawURLEncoding.EncodeToString(append(sum[:checksum], text...))
}

// decodeCursor returns the zero Position for "".
func decodeCursor(cursor, pipeline string) (p Position, err error) {
	if cursor == "" {
		return p, nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(cursor)
	if err == nil && len(raw) > checksum {
		var q url.Values
		q, err = url.ParseQuery(string(raw[checksum:]))
		p.RowKey = keyOf(q)
		if due := q.Get("due"); due != "" && err == nil {
			var ms int64
			ms, err = strconv.ParseInt(due, 10, 64)
			p.Due = time.UnixMilli(ms).UTC()
		}
	}
	if err != nil || encodeCursor(p) != cursor || checkPipeline(p.Pipeline) != nil || pipeline != "" && pipeline != p.Pipeline {
		return Position{}, badRequest("the position in this URL (after) is damaged or belongs to another filter: remove it to start at the first row")
	}
	return p, nil
}
