package event

import (
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
)

// Limits on a payload. The largest real ones are SQS's 1 MiB messages.
const (
	MaxPayload = 1 << 20 // bytes
	MaxRecords = 10_000
	MaxKey     = 1024 // bytes of a decoded key, a bucket, a version or an ETag
)

// maxNames is the most bytes of bucket, key and version together, so that every object can
// be named in a ledger.
const maxNameBytes = 1800

// Batch is what one payload said.
type Batch struct {
	Dialect Dialect
	Events  []Event
	// Ignored counts records that say nothing about order: tagging, ACLs,
	// restores, replication, and removals of objects that were not there.
	Ignored int
	// Test is set for the messages that a store or its message service sends
	// when notifications are set up: a test event, or a request to confirm a
	// subscription. It has no events and is to be acknowledged. Confirming is
	// left to a person: Pawl visits no URL that a payload names.
	Test bool
}

// Why a payload was refused. Match them with errors.Is; the error itself, a
// [*ParseError], says where.
var (
	ErrMalformed      = errors.New("malformed notification")
	ErrUnknownDialect = errors.New("unknown notification dialect")
	ErrTooLarge       = errors.New("notification too large")
)

// ParseError says which part of a payload was refused, and why.
type ParseError struct {
	Kind    error   // ErrMalformed, ErrUnknownDialect or ErrTooLarge
	Dialect Dialect // as asked for or detected
	Record  int     // index of the record, -1 for the payload as a whole
	Err     error   // the cause, or nil
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

// Unwrap gives errors.Is both the kind and the cause.
func (e *ParseError) Unwrap() []error {
	if e.Err == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Err}
}

// Parse reads the notification in payload, which must be one JSON value.
//
// With [Detect] the dialect is found out from the payload, and a payload of
// none is [ErrUnknownDialect]. A dialect that is named is taken at its word:
// what the payload says of its own origin is not looked at, which is how a
// store with an eventSource of its own is read. The envelope of Amazon SNS is
// taken off in either case.
//
// JSON is read strictly: names match case, a name that occurs twice in one
// object, invalid UTF-8 and anything after the value are refused. Unknown names
// are ignored. Every record must be right, or the whole payload is refused with
// a [*ParseError]: an event that was not understood must not be acknowledged.
//
// The payload is not kept and may be used again. Whether it is genuine is for
// the source to find out: Parse checks no signature.
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

// parser reads one payload into a batch.
type parser struct {
	requested Dialect // what the caller named
	wrapped   bool    // the payload came out of an SNS envelope
	record    int     // index of the record being read, -1 outside of records
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
		return p.rejectUndetected() // the records are already read
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

// mustFit refuses a payload whose form is not that of the dialect asked for. An
// SNS message fits all: what counts is inside.
func (p *parser) checkLayout(f layout) error {
	if p.requested == Detect || f == layoutSNS || f.matches(p.requested) {
		return nil
	}
	return p.malformed("not a notification in the dialect %s: it looks like %s", p.requested, f)
}

// add checks what all dialects have in common and takes the event, which
// happened at when, into the batch.
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
		o.VersionID = "" // written so before versioning was switched on
	}
	if ev.ETag = unquote(ev.ETag); ev.Kind == Removed {
		ev.ETag, ev.Size = "", 0 // of a delete marker, or of what is gone
	}
	ev.Dialect = p.batch.Dialect
	p.batch.Events = append(p.batch.Events, ev)
	return nil
}
