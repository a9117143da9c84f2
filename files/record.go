package files

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/pawlhq/pawl/internal/format"
	"github.com/pawlhq/pawl/store"
)

// In addition, each entity has a space of its own for its list entries.
const (
	fileSpace  = "file"        // name: file ID; due: DueAt
	keySpace   = "idempotency" // name: entity and idempotency key
	quotaSpace = "quota"       // name: entity
)

func fileKey(id string) store.Key { return store.Key{Space: fileSpace, Name: id} }

// A list entry exists while the file is Pending, Indexed or Lost. It has the nonce of the file's
// record.
func entryKey(entity, id string) store.Key { return store.Key{Space: entrySpace(entity), Name: id} }

func entrySpace(entity string) string { return "entity/" + entity }

func idempotencyKey(entity, key string) store.Key {
	return store.Key{Space: keySpace, Name: store.Join(entity, key)}
}

func quotaKey(entity string) store.Key { return store.Key{Space: quotaSpace, Name: entity} }

// ErrUnreadable is returned for a record that is damaged or from a newer version of Pawl.
var ErrUnreadable = errors.New("files: the index has an unreadable record")

// Format is the version of the index's records that this version of Pawl writes.
const Format = "1.0"

// fileBody is the body of a file record or list entry. Times are Unix milliseconds.
type fileBody struct {
	V           string         `json:"v"`
	Entity      string         `json:"entity,omitzero"` // absent in list entries
	Prefix      string         `json:"prefix,omitzero"` // the key is Prefix and the ID
	Key         string         `json:"key,omitzero"`    // set if the key does not end with the ID
	State       string         `json:"state"`
	Size        int64          `json:"size"`
	Type        string         `json:"type"`
	SHA256      digest         `json:"sha256"`
	PartSize    int64          `json:"part_size,omitzero"`
	Idempotency string         `json:"idempotency,omitzero"`
	UploadID    string         `json:"upload,omitzero"`
	WasPending  bool           `json:"was_pending,omitzero"`
	Created     int64          `json:"created"`
	Updated     int64          `json:"updated"`
	PutBy       int64          `json:"put_by,omitzero"`
	LandBy      int64          `json:"land_by,omitzero"`
	Deleted     int64          `json:"deleted,omitzero"`
	DropAt      int64          `json:"drop_at,omitzero"`
	Unknown     jsontext.Value `json:",embed"`
}

type digest [32]byte

func (d digest) AppendText(b []byte) ([]byte, error) { return hex.AppendEncode(b, d[:]), nil }

func (d digest) MarshalText() ([]byte, error) { return d.AppendText(nil) }

func (d *digest) UnmarshalText(text []byte) error {
	if len(text) != hex.EncodedLen(len(d)) {
		return errors.New("a SHA-256 has 64 digits")
	}
	_, err := hex.Decode(d[:], text)
	return err
}

func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func fromMillis(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.UnixMilli(n).UTC()
}

func encodeFile(f *File) (string, error) {
	b := fileBody{
		V: Format, Entity: f.Entity, Key: f.Key, State: f.State.String(), Size: f.Size, Type: f.ContentType, SHA256: digest(f.SHA256), PartSize: f.PartSize,
		Idempotency: f.Idempotency, UploadID: f.UploadID, WasPending: f.WasPending, Created: millis(f.CreatedAt), Updated: millis(f.UpdatedAt),
		PutBy: millis(f.PutBy), LandBy: millis(f.LandBy), Deleted: millis(f.DeletedAt), DropAt: millis(f.DropAt), Unknown: jsontext.Value(f.unknown),
	}
	if prefix, ok := strings.CutSuffix(f.Key, f.ID); ok {
		b.Prefix, b.Key = prefix, ""
	}
	return encode(&b, "file", f.ID)
}

// encodeEntry omits the fields that neither a list nor a download URL needs.
func encodeEntry(f *File) (string, error) {
	entry := *f
	entry.Entity, entry.Idempotency, entry.UploadID, entry.unknown = "", "", "", ""
	entry.PutBy, entry.LandBy = time.Time{}, time.Time{}
	return encodeFile(&entry)
}

func encode(body any, what, name string) (string, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return "", fmt.Errorf("files: encode %s %s: %w", what, name, err)
	}
	return string(text), nil
}

func decode(r *store.Record, body any, v *string) error {
	err := json.Unmarshal([]byte(r.Body), body)
	if err == nil {
		err = format.Check(*v, Format)
	}
	if err != nil {
		return fmt.Errorf("%w: %s %q: %w", ErrUnreadable, r.Space, r.Name, err)
	}
	return nil
}

func decodeFile(r *store.Record) (File, error) {
	var b fileBody
	if err := decode(r, &b, &b.V); err != nil {
		return File{ID: r.Name, Nonce: r.Nonce}, err
	}
	state, err := ParseState(b.State)
	if err != nil {
		return File{ID: r.Name, Nonce: r.Nonce}, fmt.Errorf("%w: %s %q: %w", ErrUnreadable, r.Space, r.Name, err)
	}
	f := File{
		ID: r.Name, Entity: b.Entity, Key: b.Key, State: state, WasPending: b.WasPending, Idempotency: b.Idempotency, UploadID: b.UploadID,
		Promise: Promise{Size: b.Size, ContentType: b.Type, SHA256: [32]byte(b.SHA256), PartSize: b.PartSize},
		PutBy:   fromMillis(b.PutBy), LandBy: fromMillis(b.LandBy), DeletedAt: fromMillis(b.Deleted), DropAt: fromMillis(b.DropAt),
		DueAt: r.Due, CreatedAt: fromMillis(b.Created), UpdatedAt: fromMillis(b.Updated), Nonce: r.Nonce, unknown: string(b.Unknown),
	}
	if f.Key == "" {
		f.Key = b.Prefix + f.ID
	}
	return f, nil
}

type keyBody struct {
	V    string `json:"v"`
	File string `json:"file"`
}

type quotaBody struct {
	V     string `json:"v"`
	Bytes int64  `json:"bytes"`
	Open  int64  `json:"open"`

	Unknown jsontext.Value `json:",embed"`
}

func decodeKey(r *store.Record) (id string, err error) {
	var b keyBody
	err = decode(r, &b, &b.V)
	return b.File, err
}

func decodeQuota(r *store.Record) (used Usage, unknown jsontext.Value, err error) {
	var b quotaBody
	err = decode(r, &b, &b.V)
	return Usage{Bytes: b.Bytes, Open: b.Open}, b.Unknown, err
}
