package event

import (
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
)

// Limits of a payload. The largest real payloads are SQS messages of 1 MiB.
const (
	MaxPayload = 1 << 20 // bytes
	MaxRecords = 10_000
	MaxKey     = 1024 // decoded key, bucket, version or ETag, in bytes
)

// Bucket, key and version together must fit into the name of a row in any ledger.
const maxNameBytes = 1800

// Batch is the content of one payload.
type Batch struct {
	Dialect Dialect
	Events  []Event
	// Ignored counts other records: tagging, ACLs, restores, replication, and removals of missing objects.
	Ignored int
	// Test reports a test event, or a request to confirm a subscription. It has no events and must be
	// acknowledged. Pawl visits no URL in a payload, so a person must confirm the subscription.
	Test bool
}

// These are the kinds of a [*ParseError], for errors.Is.
var (
	ErrMalformed      = errors.New("malformed notification")
	ErrUnknownDialect = errors.New("unknown notification dialect")
	ErrTooLarge       = errors.New("notification too large")
)

// ParseError is the error for a rejected payload.
type ParseError struct {
	Kind    error   // ErrMalformed, ErrUnknownDialect or ErrTooLarge
	Dialect Dialect // requested or detected
	Record  int     // index, or -1 for the whole payload
	Err     error   // cause, or nil
}

func (e *ParseError) Error() string {
	s := e.Kind.Error()
	if e.Dialect != Detect {
		s += " (" + string(e.Dialect) + ")"
	}
	if e.Record >= 0 {
		s += fmt.Sprintf(": record %d", e.Record)
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns the kind and the cause.
func (e *ParseError) Unwrap() []error {
	if e.Err == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Err}
}

// Parse parses the notification in payload, which must be one JSON value.
//
// With [Detect], Parse detects the dialect, or returns [ErrUnknownDialect]. With another dialect, it
// ignores the stated origin, so that stores with their own eventSource can be read. It always removes the
// envelope of Amazon SNS.
//
// Parse is strict: names are case-sensitive, and it rejects duplicate names, invalid UTF-8, and data after
// the value. It ignores unknown names. If one record is invalid, it rejects the whole payload with a
// [*ParseError], because an event that was not understood must not be acknowledged.
//
// Parse does not retain payload. It checks no signature: the source must authenticate notifications.
func Parse(payload []byte, dialect Dialect) (Batch, error) {
	if len(payload) > MaxPayload {
		err := fmt.Errorf("%d bytes: at most %d are accepted", len(payload), MaxPayload)
		return Batch{}, &ParseError{Kind: ErrTooLarge, Dialect: dialect, Record: -1, Err: err}
	}
	p := parser{requested: dialect, record: -1, batch: Batch{Dialect: dialect}}
	if err := p.parse(payload); err != nil {
		return Batch{}, p.parseError(err)
	}
	return p.batch, nil
}

type parser struct {
	requested Dialect // by the caller
	wrapped   bool    // in an SNS envelope
	record    int     // or -1
	batch     Batch
}

func (p *parser) parse(payload []byte) error {
	top := topObject{p: p}
	if err := json.Unmarshal(payload, &top); err != nil {
		return err
	}
	if err := p.checkLayout(top.layout); err != nil {
		return err
	}
	switch top.layout {
	case layoutRecords:
		return p.rejectUndetected() // topObject has parsed them
	case layoutTest:
		return p.parseTestEvent(payload)
	case layoutSNS:
		return p.parseSNS(payload)
	case layoutEventBridge:
		return p.parseEventBridge(payload)
	case layoutR2:
		return p.parseR2(payload)
	case layoutGCS:
		return p.parseGCS(payload)
	case layoutAzure:
		return p.parseAzure(payload)
	case layoutListing:
		return p.unknownDialect("it is a listing of a bucket: docs/NOTIFICATIONS.md (%q) has the command that converts it to notifications", "Process existing objects")
	}
	return p.unknownDialect("neither S3 records nor an event of SNS, EventBridge, R2, Pub/Sub or Event Grid")
}

// checkLayout accepts every SNS message, because only its content matters.
func (p *parser) checkLayout(f layout) error {
	if p.requested == Detect || f == layoutSNS || f.matches(p.requested) {
		return nil
	}
	return p.malformed("not a notification in the dialect %s: it looks like %s", p.requested, f)
}

func (p *parser) add(ev Event, when string) error {
	o := &ev.Object
	switch {
	case o.Bucket == "":
		return p.malformed("the bucket is missing")
	case strings.ContainsRune(o.Bucket, '/'):
		return p.malformed("bucket %s has a slash", quoteShort(o.Bucket))
	case o.Key == "":
		return p.malformed("the key is missing")
	}
	for _, s := range [...]string{o.Key, o.Bucket, o.VersionID, ev.ETag} {
		if len(s) > MaxKey {
			return p.malformed("%s is longer than %d bytes", quoteShort(s), MaxKey)
		}
	}
	if n := len(o.Bucket) + len(o.Key) + len(o.VersionID) + strings.Count(o.Key, "\x00"); n > maxNameBytes {
		return p.malformed("bucket, key, and version together have %d bytes: at most %d are accepted", n, maxNameBytes)
	}
	if ev.Sequencer.IsZero() && p.batch.Dialect.TrustsSequencer() {
		return p.malformed("%s of %s has no sequencer", quoteShort(ev.Name), o)
	}
	var err error
	if ev.Time, err = parseTime(when); err != nil {
		return p.malformedObject(*o, err)
	}
	if o.VersionID == "null" {
		o.VersionID = "" // from before versioning was enabled
	}
	if ev.ETag = unquote(ev.ETag); ev.Kind == Removed {
		ev.ETag, ev.Size = "", 0 // those of a delete marker or the removed object
	}
	ev.Dialect = p.batch.Dialect
	p.batch.Events = append(p.batch.Events, ev)
	return nil
}
