package replaysource

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/pawlhq/pawl/event"
)

// Payload is a payload that [Source.Scan] read.
type Payload struct {
	event.Batch
	// Received is the arrival time in the payload's top-level member "received_at". It is zero if
	// the payload has none.
	Received time.Time
}

// Scan reads all inputs and calls visit for each payload in order. It needs no sink. It skips
// payloads as Run does, and also rejects those with an invalid arrival time. It returns the error
// of visit, and an error if ctx ends. A source runs or scans once.
func (s *Source) Scan(ctx context.Context, visit func(Payload) error) error {
	if s.started.Swap(true) {
		return errStarted
	}
	err := s.readAll(ctx, func(payload []byte, at position) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		batch, err := event.Parse(payload, s.cfg.Dialect)
		var received time.Time
		if err == nil {
			received, err = receivedAt(payload)
		}
		if err != nil {
			return s.bad(ctx, at, err)
		}
		s.countRead(&batch)
		return visit(Payload{batch, received})
	})
	if e, ok := errors.AsType[*InputError](err); ok {
		err = fmt.Errorf("%s: %w", e.position, e.Err)
	}
	return err
}

// maxSeconds is the last second of the year 9999.
const maxSeconds = 253_402_300_799

// receivedAt returns the arrival time in a valid payload. The member is a time in RFC 3339, or a
// number of seconds since 1970.
func receivedAt(payload []byte) (time.Time, error) {
	if payload[0] != '{' || !bytes.Contains(payload, []byte(`"received_at"`)) {
		return time.Time{}, nil
	}
	var top struct {
		ReceivedAt jsontext.Value `json:"received_at"`
	}
	if err := json.Unmarshal(payload, &top); err != nil {
		return time.Time{}, err
	}
	v := top.ReceivedAt
	switch v.Kind() {
	case 0, 'n':
		return time.Time{}, nil
	case '"':
		if t, err := time.Parse(time.RFC3339, string(v[1:len(v)-1])); err == nil {
			return t, nil
		}
	case '0':
		if f, err := strconv.ParseFloat(string(v), 64); err == nil && f >= 0 && f < maxSeconds {
			return time.UnixMicro(int64(f * 1e6)).UTC(), nil
		}
	}
	return time.Time{}, errors.New("received_at is neither a time in RFC 3339 nor a number of seconds since 1970")
}
