package lock

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/pawlhq/pawl/bucket"
)

// UpdateJSON is [Bucket.Update] for an object that is one value of JSON. The change
// gets what is there, or a zero T. What a T has no place for is never dropped: an
// object with a field that T does not have, in exactly that spelling, or twice, is
// an [ErrConfig]. In an any, numbers are [json.Number], so that large ones stay
// what they are; a float64 rounds them. A null is a zero value.
//
// If the value stays the same nothing is written; otherwise it is written anew,
// without the spaces that it had. The Content of a new object has the type
// application/json.
func UpdateJSON[T any](ctx context.Context, b *Bucket, key string, change func(ctx context.Context, value *T) error, c UpdateConfig) (Updated, error) {
	return b.Update(ctx, key, func(ctx context.Context, content Content) (Content, error) {
		var value T
		if content.Exists {
			if err := decodeJSON(content.Body, &value); err != nil {
				ref := &object{b.world, bucket.Ref{Bucket: b.name, Key: key}}
				return Content{}, fmt.Errorf("updating %s: %w: it is not the JSON of a %T: %w; nothing was written", ref, ErrConfig, value, err)
			}
		}
		before, err := encodeJSON(value)
		if err != nil {
			return Content{}, err
		}
		if err := change(ctx, &value); err != nil {
			return Content{}, err
		}
		after, err := encodeJSON(value)
		if err != nil {
			return Content{}, err
		}
		if content.Exists && bytes.Equal(before, after) {
			return content, nil
		}
		if content.Body = after; !content.Exists {
			content.ContentType = "application/json"
		}
		return content, nil
	}, c)
}

// exact keeps the numbers of an any as they are.
var exact = jsonv2.UnmarshalFromFunc(func(d *jsontext.Decoder, value *any) error {
	if d.PeekKind() != '0' {
		return errors.ErrUnsupported // by this function
	}
	number, err := d.ReadValue()
	*value = json.Number(number)
	return err
})

func decodeJSON(b []byte, value any) error {
	return jsonv2.Unmarshal(b, value, jsonv2.RejectUnknownMembers(true), jsonv2.WithUnmarshalers(exact))
}

func encodeJSON(value any) ([]byte, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	err := e.Encode(value)
	return out.Bytes(), err
}
