package archive

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"
)

// tail reads a shard on from where its objects end, and notices what is not there
// any more.
//
// A stream passes silently over entries that have expired. So a reader begins at
// an entry that is known, the anchor, and that must come first; and it begins anew
// so whenever its place is so old that it may expire. A page that begins with the
// anchor has to hold the next entry, too: or else the anchor expires in the end,
// and what lies behind it becomes a gap.
type tail struct {
	stream    Stream
	shard     string
	retention time.Duration
	now       func() time.Time

	// at is the number up to which all is read. Empty: nothing is.
	at Number
	// anchor is the entry that must come first: at, or behind it. Empty: there is
	// none, and since says from when on all entries must be there.
	anchor       Number
	guessed      bool // nothing shows that the anchor is an entry
	since        time.Time
	seenEmpty    time.Time // no entry behind at arrived before it
	start        Position  // where to begin without an anchor
	unlisted     bool      // the stream does not know the shard any more
	positionTime time.Time

	reader         Reader
	awaitingAnchor bool // for the anchor
	shardGone      bool // the stream does not know the shard: what is not read is lost
}

// found is what one read has shown.
type readResult struct {
	lostUpTo  Number // all up to here may have expired
	hasLost   bool   // lost says so
	knownLost Number // of the lost entries, one that is known; empty: none is
	records   []Record
	end       bool // the shard is closed, and this is all
	// empty is when a read found no entry behind those that were read before. Zero:
	// it found some, or some may have expired.
	emptyAt time.Time
}

// next reads once.
func (t *tail) next(ctx context.Context) (readResult, error) {
	if t.reader == nil || !t.awaitingAnchor && t.nearExpiry(t.positionTime) {
		if err := t.open(ctx); err != nil {
			return t.handleError(err)
		}
	}
	asked := t.now()
	page, err := t.reader.Next(ctx)
	if err != nil {
		t.reader = nil
		return t.handleError(err)
	}
	if !t.awaitingAnchor && t.nearExpiry(t.positionTime) {
		t.reader = nil // this page may begin too late: the process stood still
		return readResult{}, nil
	}
	f := readResult{end: page.End}
	for _, e := range page.Records {
		if t.awaitingAnchor && e.Number == t.anchor {
			t.awaitingAnchor, t.positionTime = false, e.Arrival
		}
		if t.at != "" && !t.at.less(e.Number) {
			continue
		}
		if t.awaitingAnchor && t.mayHaveExpired() {
			f.hasLost, f.lostUpTo, f.knownLost, t.awaitingAnchor = true, e.Number.before(), t.knownLost(), false
		}
		t.awaitingAnchor = false
		t.at, t.anchor, t.positionTime = e.Number, e.Number, e.Arrival
		f.records = append(f.records, rejectMalformed(e))
	}
	if page.Behind == 0 && len(f.records) == 0 && !page.End && !t.mayHaveLost() {
		t.positionTime = latest(t.positionTime, asked) // the next read resumes behind all that there is
		if len(page.Records) == 0 {
			f.emptyAt = asked
		}
	}
	return f, nil
}

// open begins to read at the anchor. If that has expired, it begins with the
// oldest entry.
func (t *tail) open(ctx context.Context) (err error) {
	from := t.start
	if t.anchor != "" {
		from = Position{At: t.anchor}
	}
	t.awaitingAnchor = true
	t.reader, err = t.stream.Open(ctx, t.shard, from)
	if errors.Is(err, ErrGone) {
		t.reader, err = t.stream.Open(ctx, t.shard, Position{})
	}
	return err
}

// failed ends a shard that the stream does not know any more.
func (t *tail) handleError(err error) (readResult, error) {
	switch {
	case errors.Is(err, ErrNoStream) && t.unlisted:
		t.shardGone = true
		return readResult{end: true}, nil
	case errors.Is(err, ErrGone):
		t.reader = nil // and the anchor is looked for again
		return readResult{}, nil
	}
	return readResult{}, fmt.Errorf("reading shard %s: %w", t.shard, err)
}

// expired reports whether entries before the next one may have been lost.
func (t *tail) mayHaveLost() bool { return t.shardGone || t.awaitingAnchor && t.mayHaveExpired() }

// missed returns the anchor if it is an entry that was not read, although it is known that
// there was one.
func (t *tail) knownLost() Number {
	if t.guessed || !t.at.less(t.anchor) {
		return ""
	}
	return t.anchor
}

// lossy reports whether entries may have expired between the place where reading must
// resume and the first entry that is left.
func (t *tail) mayHaveExpired() bool {
	if t.anchor != "" {
		return t.nearExpiry(t.seenEmpty)
	}
	return t.nearExpiry(latest(t.seenEmpty, t.since))
}

// aged reports that what arrived then may have expired, or is about to.
func (t *tail) nearExpiry(then time.Time) bool {
	return !t.now().Before(then.Add(t.retention - t.retention/8))
}

// fit makes an entry malformed that no format can hold. One record must not stop its
// shard.
func rejectMalformed(e Record) Record {
	if e.Malformed != nil {
		return e
	}
	year := e.Arrival.UTC().Year()
	odd := slices.IndexFunc(e.UserRecords, func(r UserRecord) bool { return !utf8.ValidString(r.PartitionKey) || !utf8.ValidString(r.HashKey) })
	switch {
	case odd >= 0:
		e.Malformed = fmt.Errorf("the keys %q and %q of user record %d are not UTF-8", e.UserRecords[odd].PartitionKey, e.UserRecords[odd].HashKey, odd)
	case year < 0 || year > 9999:
		e.Malformed = fmt.Errorf("the arrival year %d is out of range", year)
	case len(e.UserRecords) == 0:
		e.Malformed = errors.New("the record has no user records")
	default:
		return e
	}
	if len(e.UserRecords) == 1 {
		e.Raw = e.UserRecords[0].Data
	} else {
		e.Raw = encodeJSON(e.UserRecords)
	}
	e.UserRecords = nil
	return e
}
