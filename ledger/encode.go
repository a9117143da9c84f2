package ledger

import (
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Encode returns the row as JSON, without key, nonce and token, which a backend
// keeps beside it.
func Encode(r *Row) ([]byte, error) {
	// A store's ETag or a worker's message may hold anything.
	b, err := json.Marshal(r, jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return nil, fmt.Errorf("ledger: row %s cannot be encoded: %w", r.RowKey, err)
	}
	return b, nil
}

// Decode restores what Encode wrote. Fields of a newer Pawl are ignored.
func Decode(key RowKey, nonce Nonce, body []byte) (Row, error) {
	var r Row
	err := json.Unmarshal(body, &r)
	if err == nil && jsontext.Value(body).Kind() == 'n' {
		err = errors.New("it is null") // which is read as anything
	}
	if err != nil {
		return Row{}, fmt.Errorf("ledger: row %s cannot be read: %w", key, err)
	}
	r.RowKey, r.Nonce = key, nonce
	return r, nil
}
