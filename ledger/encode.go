package ledger

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pawlhq/pawl/event"
)

// Encode returns the row as compact JSON, without key and nonce. Reflection would take most of the
// time of a swap.
//
// The top level is Want; its default kind is created. "have" has the members of Have that differ
// from Want. Without "have", Have equals Want; null is the zero Version. "at" is UpdatedAt. The
// fence and times in whole milliseconds are relative to "at"; other times are written in full.
//
// Defaults: "created" is "event". Under a lease, "doubt" is true and "attempts" is 1. "since" is
// the time of the oldest history entry.
//
// A history entry is "MILLISECONDS WHAT: NOTE", relative to the entry before it. Abbreviations in a
// note: ~w is the kind and order of Want, ~o the order of Want, ~f the word fence and the fence, ~l
// the same with the lease's owner, and ~~ is ~.
func Encode(r *Row) (string, error) {
	e := encoder{b: make([]byte, 0, 512), at: r.UpdatedAt.UnixMilli()}
	e.short = abbreviations(r)
	e.b = append(e.b, `{"v":"`+RowFormat+`"`...)
	e.member("at")
	e.full(r.UpdatedAt)
	e.version(&r.Want, &Version{Kind: event.Created})
	e.have(r)
	if r.Lease.Fence != 0 {
		e.member("fence")
		e.b = strconv.AppendInt(e.b, r.Lease.Fence-e.at, 10) // Decode undoes an overflow
	}
	e.text("owner", r.Lease.Owner)
	e.time("until", r.Lease.Until)
	if leased := r.Lease.Owner != ""; r.Doubt != leased {
		e.member("doubt")
		e.b = strconv.AppendBool(e.b, r.Doubt)
	}
	e.flag("forced", r.Forced)
	if r.Attempts != usualAttempts(&r.Lease) {
		e.member("attempts")
		e.b = strconv.AppendInt(e.b, int64(r.Attempts), 10)
	}
	e.time("retry", r.RetryAt)
	e.text("error", r.LastError)
	e.flag("dead", r.Dead)
	e.time("verify", r.VerifyAt)
	e.time("event", r.EventTime)
	if !r.CreatedTime.Equal(r.EventTime) {
		e.timeOrEmpty("created", r.CreatedTime)
	}
	e.number("disorder", int64(r.Disorder))
	if n := len(r.History); n == 0 || !r.CreatedAt.Equal(r.History[n-1].At) {
		e.timeOrEmpty("since", r.CreatedAt)
	}
	e.history(r.History)
	if n := len(r.Unknown); n > 2 {
		e.b = append(append(e.b, ','), r.Unknown[1:n-1]...)
	}
	if newMember != "" && !strings.Contains(r.Unknown, newMember) {
		e.b = append(append(e.b, ','), newMember...)
	}
	if e.failed != nil {
		return "", fmt.Errorf("ledger: row %s cannot be encoded: %w", r.RowKey, e.failed)
	}
	return string(append(e.b, '}')), nil
}

type encoder struct {
	b      []byte
	at     int64 // base of relative times, in milliseconds since 1970
	short  []abbreviation
	failed error
}

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

// A store's ETag may contain invalid UTF-8.
func (e *encoder) quote(s string) {
	e.b, _ = jsontext.AppendQuote(e.b, s) // only reports invalid UTF-8
}

func (e *encoder) time(name string, t time.Time) {
	if !t.IsZero() {
		e.member(name)
		e.instant(t)
	}
}

func (e *encoder) timeOrEmpty(name string, t time.Time) {
	e.time(name, t)
	if t.IsZero() {
		e.member(name)
		e.quote("")
	}
}

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

var errYear = errors.New("time is outside the years 0 to 9999")

func (e *encoder) check(t time.Time) {
	if y := t.UTC().Year(); y < 0 || y > 9999 {
		e.failed = errYear
	}
}

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

func same(a, b *Version) bool {
	return a.Sequencer.Raw() == b.Sequencer.Raw() && a.Generation == b.Generation && a.Kind == b.Kind && a.Identity.equal(&b.Identity)
}

func (i *Identity) equal(j *Identity) bool {
	return i.VersionID == j.VersionID && i.ETag == j.ETag && i.ModTime.Equal(j.ModTime) && i.Meta == j.Meta && i.Size == j.Size
}

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
	for _, m := range [...]struct{ name, value, base string }{
		{"version", v.Identity.VersionID, base.Identity.VersionID}, {"etag", v.Identity.ETag, base.Identity.ETag}, {"meta", v.Identity.Meta, base.Identity.Meta},
	} {
		if m.value != m.base {
			e.member(m.name)
			e.quote(m.value)
		}
	}
	if t := v.Identity.ModTime; !t.Equal(base.Identity.ModTime) {
		e.timeOrEmpty("mtime", t)
	}
	if v.Identity.Size != base.Identity.Size {
		e.member("size")
		e.b = strconv.AppendInt(e.b, v.Identity.Size, 10)
	}
}

func (e *encoder) kind(k event.Kind) { e.quote(k.String()) }

func (e *encoder) history(h []Entry) {
	if len(h) == 0 {
		return
	}
	e.member("log")
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

// line returns the base of the next entry.
func (e *encoder) line(h *Entry, last int64) int64 {
	var buf [256]byte
	s := buf[:0]
	e.check(h.At)
	if h.At.Nanosecond()%int(time.Millisecond) != 0 {
		s = h.At.UTC().AppendFormat(s, time.RFC3339Nano)
	} else {
		s = strconv.AppendInt(s, last-h.At.UnixMilli(), 10)
	}
	s = append(append(s, ' '), h.What...)
	if h.Note != "" {
		s = e.abbreviate(append(s, ": "...), h.Note)
	}
	e.b, _ = jsontext.AppendQuote(e.b, s)
	return h.At.UnixMilli()
}

func usualAttempts(l *Lease) int {
	if l.Owner != "" {
		return 1
	}
	return 0
}

type abbreviation struct {
	letter byte
	text   string
}

// abbreviations orders the texts so that each comes before the shorter texts that it contains.
func abbreviations(r *Row) []abbreviation {
	order, fence := r.Want.Order(), "fence "+strconv.FormatInt(r.Lease.Fence, 10)
	return slices.DeleteFunc([]abbreviation{
		{'w', r.Want.Kind.String() + " " + order}, {'o', order}, {'l', fence + " by " + r.Lease.Owner}, {'f', fence},
	}, func(a abbreviation) bool { return len(a.text) < minAbbreviated })
}

// minAbbreviated is in bytes.
const minAbbreviated = 9

func (e *encoder) abbreviate(b []byte, note string) []byte {
next:
	for note != "" {
		for _, a := range e.short {
			if strings.HasPrefix(note, a.text) {
				b, note = append(b, '~', a.letter), note[len(a.text):]
				continue next
			}
		}
		if note[0] == '~' {
			b = append(b, '~')
		}
		b, note = append(b, note[0]), note[1:]
	}
	return b
}
