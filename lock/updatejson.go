package lock

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"
	"github.com/pawlhq/pawl/event"
)

// UpdateJSON is [Bucket.Update] for an object that holds one JSON value. change gets the decoded
// value, or a zero T if the object is missing. UpdateJSON never drops data: it returns [ErrConfig]
// if T has no field with exactly the name of a member of the object, or if the object has a member
// twice. In a value of type any, numbers are [json.Number], because a float64 would round large
// numbers. A null decodes to a zero value.
//
// If the value is unchanged, nothing is written. Otherwise UpdateJSON encodes the value as package
// encoding/json does without HTML escapes. It does not keep the original white space. A json.Number
// is always encoded as a number, never as a string. If the value is unchanged and the Fence is
// higher, white space at the end encodes the Fence, so that the bytes differ. A new object has the
// content type application/json.
func UpdateJSON[T any](ctx context.Context, b *Bucket, key string, change func(ctx context.Context, value *T) error, c UpdateConfig) (Updated, error) {
	ref := event.Object{Bucket: b.name, Key: key}
	return b.update(ctx, key, func(ctx context.Context, content Content) (Content, error) {
		var value T
		var before []byte
		var err error
		if content.Exists {
			if value, err = decodeJSON[T](content.Body); err == nil {
				before, err = encodeJSON(&value)
			}
			if err != nil {
				return Content{}, fmt.Errorf("update %s: %w: its content does not match %T: %w; nothing was written", ref, ErrConfig, value, err)
			}
		}
		if err := change(ctx, &value); err != nil {
			return Content{}, err
		}
		after, err := encodeJSON(&value)
		if err != nil {
			return Content{}, fmt.Errorf("update %s: %w: the JSON of the %T cannot be read again: %w; nothing was written", ref, ErrConfig, value, err)
		}
		if content.Exists && bytes.Equal(before, after) {
			return content, nil
		}
		if content.Body = after; !content.Exists {
			content.ContentType = "application/json"
		}
		return content, nil
	}, encodeFence, c)
}

// encodeFence returns the same JSON with the fence encoded in white space at its end: a blank for
// each 0 bit, and a tab for each 1 bit. Fences rise, so these bytes never repeat.
func encodeFence(b []byte, fence int64) []byte {
	b = append(bytes.TrimRight(b, " \t\r\n"), '\n')
	for _, bit := range strconv.FormatInt(fence, 2) {
		b = append(b, " \t"[bit-'0'])
	}
	return append(b, '\n')
}

// number encodes and decodes a json.Number as a number, not as a string. An empty one is 0.
var number = jsonv2.JoinOptions(
	jsonv2.WithMarshalers(jsonv2.MarshalToFunc(func(e *jsontext.Encoder, n json.Number) error {
		return e.WriteValue(jsontext.Value(cmp.Or(n, "0")))
	})),
	jsonv2.WithUnmarshalers(jsonv2.JoinUnmarshalers(
		jsonv2.UnmarshalFromFunc(func(d *jsontext.Decoder, n *json.Number) error {
			value, err := d.ReadValue()
			switch {
			case err != nil:
				return err
			case value.Kind() == 'n':
				*n = ""
			case value.Kind() == '0':
				*n = json.Number(value)
			default:
				return errors.New("not a number")
			}
			return nil
		}),
		jsonv2.UnmarshalFromFunc(func(d *jsontext.Decoder, value *any) error {
			if d.PeekKind() != '0' {
				return errors.ErrUnsupported // not handled here
			}
			n, err := d.ReadValue()
			*value = json.Number(n)
			return err
		}))),
)

// jsonFormat configures encoding and decoding like package encoding/json, with two differences. It
// is strict, and it calls the methods of a type for every value of that type.
var jsonFormat = jsonv2.JoinOptions(number,
	jsonv2.RejectUnknownMembers(true), jsonv2.Deterministic(true),
	jsonv2.FormatNilMapAsNull(true), jsonv2.FormatNilSliceAsNull(true),
	jsonv1.FormatBytesWithLegacySemantics(true), jsonv1.FormatByteArrayAsArray(true), jsonv1.FormatDurationAsNano(true),
	jsonv1.OmitEmptyWithLegacySemantics(true), jsonv1.StringifyWithLegacySemantics(true),
)

func decodeJSON[T any](b []byte) (value T, err error) {
	err = jsonv2.Unmarshal(b, &value, jsonFormat)
	return value, err
}

// encodeJSON returns the JSON of a value. It returns an error if the JSON cannot be decoded again.
func encodeJSON[T any](value *T) ([]byte, error) {
	b, err := jsonv2.Marshal(value, jsonFormat)
	if err == nil {
		_, err = decodeJSON[T](b)
	}
	return append(b, '\n'), err
}
