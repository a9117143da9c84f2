package action

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/event"
)

// Facts describes one attempt to external programs. The field names are stable.
type Facts struct {
	Pipeline string `json:"pipeline"`
	Bucket   string `json:"bucket"`
	// Key is absent, and KeyBase64 present, if the key is not valid UTF-8, which JSON cannot
	// represent. A modified Key could name another object.
	Key       string `json:"key,omitempty"`
	KeyBase64 []byte `json:"key_base64,omitempty"`
	// Kind is "created" or "removed". ETag and Size are empty for a removed object.
	Kind      event.Kind `json:"kind"`
	ETag      string     `json:"etag"`
	VersionID string     `json:"version_id"`
	Size      int64      `json:"size"` // in bytes
	// The next fields are those of [pawl.Task].
	Fence          int64  `json:"fence"`
	Attempt        int    `json:"attempt"`
	IdempotencyKey string `json:"idempotency_key"`
}

// FactsOf returns the facts of t.
func FactsOf(t *pawl.Task) Facts {
	f := Facts{
		Pipeline:       t.Pipeline,
		Bucket:         t.Object.Bucket,
		Key:            t.Object.Key,
		Kind:           t.Kind,
		ETag:           t.Info.ETag,
		VersionID:      cmp.Or(t.Info.VersionID, t.Object.VersionID),
		Size:           t.Info.Size,
		Fence:          t.Fence,
		Attempt:        t.Attempt,
		IdempotencyKey: t.IdempotencyKey,
	}
	if !utf8.ValidString(f.Key) {
		f.Key, f.KeyBase64 = "", []byte(t.Object.Key)
	}
	return f
}

// JSON returns the facts as one JSON object.
func (f Facts) JSON() ([]byte, error) {
	b, err := json.Marshal(f)
	if err != nil {
		return nil, fmt.Errorf("cannot describe the attempt as JSON: %w", err)
	}
	return b, nil
}

// Environ returns the facts as environment variables, "NAME=value". The caller must reject a key
// with a NUL byte, which an environment variable cannot contain.
func (f Facts) Environ() []string {
	key := f.Key
	if f.KeyBase64 != nil {
		key = string(f.KeyBase64)
	}
	return []string{
		"PAWL_PIPELINE=" + f.Pipeline,
		"PAWL_BUCKET=" + f.Bucket,
		"PAWL_KEY=" + key,
		"PAWL_KIND=" + f.Kind.String(),
		"PAWL_ETAG=" + f.ETag,
		"PAWL_VERSION_ID=" + f.VersionID,
		"PAWL_SIZE=" + strconv.FormatInt(f.Size, 10),
		"PAWL_FENCE=" + strconv.FormatInt(f.Fence, 10),
		"PAWL_ATTEMPT=" + strconv.Itoa(f.Attempt),
		"PAWL_IDEMPOTENCY_KEY=" + f.IdempotencyKey,
	}
}
