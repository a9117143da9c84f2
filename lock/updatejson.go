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

// UpdateJSON is [Bucket.Update] for an object that holds one JSON value. change gets a zero T if
// the object is missing or null.
//
// UpdateJSON never drops data: it returns [ErrConfig] for a member that occurs twice, or for which
// T has no field. In a value of type any, numbers are [json.Number]. The encoding is that of
// encoding/json without HTML escapes. White space at the end encodes the Fence.
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

// Fences rise, so the white space at the end never repeats.
func encodeFence(b []byte, fence int64) []byte {
	b = append(bytes.TrimRight(b, " \t\r\n"), '\n')
	for _, bit := range strconv.FormatInt(fence, 2) {
		b = append(b, " \t"[bit-'0'])
	}
	return append(b, '\n')
}

// A json.Number is a number, never a string. An empty one is 0.
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
				return errors.ErrUnsupported
			}
			n, err := d.ReadValue()
			*value = json.Number(n)
			return err
		}))),
)

// jsonFormat is that of encoding/json, but strict. It calls a type's methods for every value.
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

// encodeJSON fails if the JSON cannot be decoded again.
func encodeJSON[T any](value *T) ([]byte, error) {
	b, err := jsonv2.Marshal(value, jsonFormat)
	if err == nil {
		_, err = decodeJSON[T](b)
	}
	return append(b, '\n'), err
}
