package archive

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"
)

// tail reads a shard after the end of its stored objects, and detects missing records.
//
// A stream silently skips expired records. A tail therefore starts at a known record, the anchor,
// and the anchor must come first. If records at its position may soon expire, it starts again at the
// anchor. A page that begins with the anchor must also contain the next record. If no page does,
// the anchor expires, and the range after it becomes a gap.
type tail struct {
	stream    Stream
	shard     string
	retention time.Duration
	now       func() time.Time

	// at is the last number that the tail has read; empty if it has read nothing.
	at Number
	// anchor is the record that must come first: the record at, or a later one. If it is empty,
	// every record that arrived at since or later must exist.
	anchor       Number
	guessed      bool // it is unknown whether a record has the number anchor
	since        time.Time
	seenEmpty    time.Time // no record after at arrived before seenEmpty
	start        Position  // used without an anchor
	unlisted     bool      // the stream no longer lists the shard
	positionTime time.Time

	reader         Reader
	awaitingAnchor bool
	shardGone      bool // the stream no longer has the shard, so unread records are lost
}

type readResult struct {
	lostUpTo  Number // records after at, up to this number, may have expired
	hasLost   bool
	knownLost Number // a record that is known to be lost, or empty
	records   []Record
	end       bool // the shard is closed and completely read
	// emptyAt is the time of a read that found no new record. It is zero if records may have
	// expired.
	emptyAt time.Time
}

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
		t.reader = nil // this page may have skipped records, because the process paused
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
		t.positionTime = latest(t.positionTime, asked) // this read reached the end of the shard
		if len(page.Records) == 0 {
			f.emptyAt = asked
		}
	}
	return f, nil
}

// open starts at the oldest record if the anchor has expired.
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

func (t *tail) handleError(err error) (readResult, error) {
	switch {
	case errors.Is(err, ErrNoStream) && t.unlisted:
		t.shardGone = true
		return readResult{end: true}, nil
	case errors.Is(err, ErrGone):
		t.reader = nil // read again from the anchor
		return readResult{}, nil
	}
	return readResult{}, fmt.Errorf("reading shard %s: %w", t.shard, err)
}

func (t *tail) mayHaveLost() bool { return t.shardGone || t.awaitingAnchor && t.mayHaveExpired() }

// knownLost returns the anchor if it is known to be a record that the tail has not read.
func (t *tail) knownLost() Number {
	if t.guessed || !t.at.less(t.anchor) {
		return ""
	}
	return t.anchor
}

// mayHaveExpired reports whether records between the read position and the oldest record may have
// expired.
func (t *tail) mayHaveExpired() bool {
	if t.anchor != "" {
		return t.nearExpiry(t.seenEmpty)
	}
	return t.nearExpiry(latest(t.seenEmpty, t.since))
}

// nearExpiry reports whether a record that arrived at then has expired, or soon will.
func (t *tail) nearExpiry(then time.Time) bool {
	return !t.now().Before(then.Add(t.retention - t.retention/8))
}

// rejectMalformed marks a record that no format can represent. It would otherwise block its shard.
func rejectMalformed(e Record) Record {
	if e.Malformed != nil {
		return e
	}
	year := e.Arrival.UTC().Year()
	invalid := slices.IndexFunc(e.UserRecords, func(r UserRecord) bool { return !utf8.ValidString(r.PartitionKey) || !utf8.ValidString(r.HashKey) })
	switch {
	case invalid >= 0:
		e.Malformed = fmt.Errorf("the keys %q and %q of user record %d are not UTF-8", e.UserRecords[invalid].PartitionKey, e.UserRecords[invalid].HashKey, invalid)
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
