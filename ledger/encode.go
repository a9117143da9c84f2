package ledger

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pawlhq/pawl/event"
)

// bodyVersion is the version of the bodies that Encode writes. Decode reads those of the
// same major version, and keeps the members that it does not know.
const bodyVersion = "1.0"

// Encode returns the row as compact JSON, without key and nonce. It is written by hand,
// because reflection takes most of the time of a swap.
//
// The top level is Want, and "have" has only what differs from it; no "have" means that
// it equals Want, and null that it is the zero Version. "at" is UpdatedAt; the fence and
// other times are in milliseconds relative to it, or full where they are no whole
// milliseconds. Without "created", CreatedTime equals EventTime. A line of the history is
// "MILLISECONDS WHAT: NOTE", relative to the line before it. In a note, ~o stands for the
// order of Want, ~f for the fence, and ~~ for ~.
func Encode(r *Row) (string, error) {
	e := encoder{b: make([]byte, 0, 512), at: r.UpdatedAt.UnixMilli()}
	e.order, e.fence = abbreviated(r)
	e.b = append(e.b, `{"v":"`+bodyVersion+`"`...)
	e.member("at")
	e.full(r.UpdatedAt)
	e.version(&r.Want, new(Version))
	e.have(r)
	if r.Lease != (Lease{}) {
		e.member("lease")
		e.lease(&r.Lease)
	}
	e.flag("doubt", r.Doubt)
	e.flag("forced", r.Forced)
	e.number("attempts", int64(r.Attempts))
	e.time("retry", r.RetryAt)
	e.text("error", r.LastError)
	e.flag("dead", r.Dead)
	e.time("verify", r.VerifyAt)
	e.time("event", r.EventTime)
	switch {
	case r.CreatedTime.Equal(r.EventTime):
	case r.CreatedTime.IsZero():
		e.member("created")
		e.quote("")
	default:
		e.time("created", r.CreatedTime)
	}
	e.number("disorder", int64(r.Disorder))
	e.time("since", r.CreatedAt)
	e.history(r.History)
	if n := len(r.Unknown); n > 2 {
		e.b = append(append(e.b, ','), r.Unknown[1:n-1]...)
	}
	if e.failed != nil {
		return "", fmt.Errorf("ledger: row %s cannot be encoded: %w", r.RowKey, e.failed)
	}
	return string(append(e.b, '}')), nil
}

// encoder appends members to an object.
type encoder struct {
	b      []byte
	at     int64  // milliseconds since 1970 that times are relative to
	order  string // that notes do not repeat; empty: none
	fence  string
	failed error
}

// member begins a member, after a comma unless it is the object's first.
func (e *encoder) member(name string) {
	if e.b[len(e.b)-1] != '{' {
		e.b = append(e.b, ',')
	}
	e.b = append(append(append(e.b, '"'), name...), `":`...)
}

func (e *encoder) flag(name string, set bool) {
	if set {
		e.member(name)
		e.b = append(e.b, "true"...)
	}
}

func (e *encoder) number(name string, n int64) {
	if n != 0 {
		e.member(name)
		e.b = strconv.AppendInt(e.b, n, 10)
	}
}

func (e *encoder) text(name, s string) {
	if s != "" {
		e.member(name)
		e.quote(s)
	}
}

// quote replaces invalid UTF-8, which a store's ETag or a worker's message may hold.
func (e *encoder) quote(s string) {
	e.b, _ = jsontext.AppendQuote(e.b, s) // the error says that UTF-8 was invalid
}

func (e *encoder) time(name string, t time.Time) {
	if !t.IsZero() {
		e.member(name)
		e.instant(t)
	}
}

// instant writes a time relative to that of the row.
func (e *encoder) instant(t time.Time) {
	if t.Nanosecond()%int(time.Millisecond) != 0 {
		e.full(t)
		return
	}
	e.check(t)
	e.b = strconv.AppendInt(e.b, t.UnixMilli()-e.at, 10)
}

func (e *encoder) full(t time.Time) {
	e.check(t)
	e.b = append(t.UTC().AppendFormat(append(e.b, '"'), time.RFC3339Nano), '"')
}

var errYear = errors.New("a time is not in the years 0 to 9999")

func (e *encoder) check(t time.Time) {
	if y := t.UTC().Year(); y < 0 || y > 9999 {
		e.failed = errYear
	}
}

// have writes what differs from Want.
func (e *encoder) have(r *Row) {
	switch zero := (Version{}); {
	case same(&r.Have, &r.Want):
	case same(&r.Have, &zero):
		e.member("have")
		e.b = append(e.b, "null"...)
	default:
		e.member("have")
		e.b = append(e.b, '{')
		e.version(&r.Have, &r.Want)
		e.b = append(e.b, '}')
	}
}

// same compares all that is written of two versions.
func same(a, b *Version) bool {
	return a.Sequencer.Raw() == b.Sequencer.Raw() && a.Generation == b.Generation && a.Kind == b.Kind && a.Identity.equal(&b.Identity)
}

func (i *Identity) equal(j *Identity) bool {
	return i.VersionID == j.VersionID && i.ETag == j.ETag && i.ModTime.Equal(j.ModTime) && i.Meta == j.Meta && i.Size == j.Size
}

// version writes the members of v that differ from base.
func (e *encoder) version(v, base *Version) {
	if s := v.Sequencer.Raw(); s != base.Sequencer.Raw() {
		e.member("seq")
		e.quote(s)
	}
	if v.Generation != base.Generation {
		e.member("gen")
		e.b = strconv.AppendUint(e.b, v.Generation, 10)
	}
	if v.Kind != base.Kind {
		e.member("kind")
		e.kind(v.Kind)
	}
	if !v.Identity.equal(&base.Identity) {
		e.member("id")
		e.identity(&v.Identity, &base.Identity)
	}
}

func (e *encoder) kind(k event.Kind) { e.quote(k.String()) }

func (e *encoder) identity(i, base *Identity) {
	e.b = append(e.b, '{')
	for _, m := range [...]struct{ name, value, base string }{
		{"version", i.VersionID, base.VersionID}, {"etag", i.ETag, base.ETag}, {"meta", i.Meta, base.Meta},
	} {
		if m.value != m.base {
			e.member(m.name)
			e.quote(m.value)
		}
	}
	if !i.ModTime.Equal(base.ModTime) {
		e.member("mtime")
		if i.ModTime.IsZero() {
			e.quote("")
		} else {
			e.instant(i.ModTime)
		}
	}
	if i.Size != base.Size {
		e.member("size")
		e.b = strconv.AppendInt(e.b, i.Size, 10)
	}
	e.b = append(e.b, '}')
}

func (e *encoder) lease(l *Lease) {
	e.b = append(e.b, '{')
	e.text("owner", l.Owner)
	if l.Fence != 0 {
		e.member("fence")
		e.b = strconv.AppendInt(e.b, l.Fence-e.at, 10) // it may overflow, and does so back again
	}
	e.time("until", l.Until)
	e.b = append(e.b, '}')
}

func (e *encoder) history(h []Entry) {
	if len(h) == 0 {
		return
	}
	e.member("history")
	last := e.at
	for i := range h {
		e.b = append(e.b, ","[:min(i, 1)]...)
		if i == 0 {
			e.b = append(e.b, '[')
		}
		last = e.line(&h[i], last)
	}
	e.b = append(e.b, ']')
}

// line writes one line, and returns the time that the next one is relative to.
func (e *encoder) line(h *Entry, last int64) int64 {
	var room [256]byte
	s := room[:0]
	e.check(h.At)
	if h.At.Nanosecond()%int(time.Millisecond) != 0 {
		s = h.At.UTC().AppendFormat(s, time.RFC3339Nano)
	} else {
		s = strconv.AppendInt(s, last-h.At.UnixMilli(), 10)
	}
	s = append(append(s, ' '), h.What...)
	if h.Note != "" {
		s = e.shorten(append(s, ": "...), h.Note)
	}
	e.b, _ = jsontext.AppendQuote(e.b, s)
	return h.At.UnixMilli()
}

// abbreviated returns the order of Want and the fence, which notes repeat. One that is too
// short to be worth it is empty.
func abbreviated(r *Row) (order, fence string) {
	if order = r.Want.Order(); len(order) < minAbbreviated {
		order = ""
	}
	if fence = strconv.FormatInt(r.Lease.Fence, 10); len(fence) < minAbbreviated {
		fence = ""
	}
	return order, fence
}

// minAbbreviated is the length from which an order or a fence is abbreviated.
const minAbbreviated = 9

// shorten appends a note with its abbreviations.
func (e *encoder) shorten(b []byte, note string) []byte {
	for note != "" {
		switch {
		case note[0] == '~':
			b, note = append(b, "~~"...), note[1:]
		case e.order != "" && strings.HasPrefix(note, e.order):
			b, note = append(b, "~o"...), note[len(e.order):]
		case e.fence != "" && strings.HasPrefix(note, e.fence):
			b, note = append(b, "~f"...), note[len(e.fence):]
		default:
			b, note = append(b, note[0]), note[1:]
		}
	}
	return b
}
