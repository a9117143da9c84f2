package dashboard

import (
	"crypto/sha256"
	"encoding/base64"
	"net/url"

	"github.com/pawlhq/pawl/ledger"
)

// checksum is the number of bytes of a checksum in a cursor. It detects damage. A cursor grants nothing, so
// that it needs no signature, and a URL works at every process.
const checksum = 6

func encodeCursor(k ledger.RowKey) string {
	text := keyValues(k).Encode()
	sum := sha256.Sum256([]byte(text))
	return base64.RawURLEncoding.EncodeToString(append(sum[:checksum], text...))
}

// decodeCursor returns the zero key for "".
func decodeCursor(cursor, pipeline string) (k ledger.RowKey, err error) {
	if cursor == "" {
		return k, nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(cursor)
	if err == nil && len(raw) > checksum {
		var q url.Values
		q, err = url.ParseQuery(string(raw[checksum:]))
		k = ledger.RowKey{Pipeline: q.Get("pipeline"), Bucket: q.Get("bucket"), Key: q.Get("key"), VersionID: q.Get("version")}
	}
	if err != nil || encodeCursor(k) != cursor || pipeline != "" && pipeline != k.Pipeline {
		return ledger.RowKey{}, badRequest("the position in this URL (after) is damaged or belongs to another filter: remove it to start at the first row")
	}
	return k, nil
}
