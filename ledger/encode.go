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

// Decode restores what Encode wrote. Fields of a newer Pawl are ignored. What
// cannot be read, as a value that only a newer Pawl knows, makes an
// [Row.Unreadable] row: the trouble of one row must not be that of others.
func Decode(key RowKey, nonce Nonce, body []byte) Row {
	var r Row
	err := json.Unmarshal(body, &r)
	if err == nil && jsontext.Value(body).Kind() == 'n' {
		err = errors.New("it is null") // which is read as anything
	}
	if err != nil {
		return UnreadableRow(key, nonce, err)
	}
	r.RowKey, r.Nonce = key, nonce
	return r
}

// UnreadableRow is a stored row of which nothing but its key and nonce is known.
func UnreadableRow(key RowKey, nonce Nonce, why error) Row {
	return Row{RowKey: key, Nonce: nonce, Unreadable: fmt.Errorf(
		"the row of %s in the ledger cannot be read: %w; a newer Pawl wrote it, or it is damaged: upgrade this one, or restore the ledger", key, why)}
}
