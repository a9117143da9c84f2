package archive

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawlhq/pawl/cell"
)

// shard stores one shard, as its owner. It is not safe for concurrent use.
type shard struct {
	*Archive
	Shard
	claim     Claim
	retention time.Duration
	since     time.Time // from when on all entries must be there
	fromBegin bool      // the shard's first entry is the archive's
	// parentsEnd is the latest moment at which a parent was known to be open. Zero: unknown.
	parentsEnd time.Time
	unknown    error // the bucket holds an object that the register does not know, or perhaps does not know

	cell     cell.Cell
	version  string
	progress Progress

	tail  tail
	plan  planner
	ended bool
	sent  bool   // the intent is stored
	saved func() // is called when an object is stored
}

// drive stores a shard that was taken over and compared with a listing.
func (s *shard) drive(ctx context.Context) error {
	if s.unknown != nil {
		return s.unknown
	}
	var err error
	for err == nil && s.progress.State != Finished {
		err = s.step(ctx)
	}
	if err != nil && ctx.Err() != nil {
		bounded, stop := context.WithTimeout(context.WithoutCancel(ctx), s.leaveTime())
		defer stop()
		return errors.Join(err, s.leave(bounded))
	}
	return err
}

// leave commits the intent if all of it is stored, so that the next owner need not
// replay it.
func (s *shard) leave(ctx context.Context) error {
	if s.progress.Intent == nil {
		return nil
	}
	return s.writeChecked(ctx, s.progress.Commit())
}

// writeChecked replaces the register by one that commits the intent. It first sends a
// HEAD request for each object: the answers to the PUTs may be hours old. A pending
// object that was deleted since can be stored again, a committed one cannot.
func (s *shard) writeChecked(ctx context.Context, next Progress) error {
	if s.progress.Intent != nil {
		for _, o := range s.progress.Intent.Objects {
			stored, err := s.look(ctx, &o)
			if err == nil && !stored {
				err = fmt.Errorf("%s was announced and is not stored: it stays pending, and the next owner of the shard %s stores it", s.object(o.Key), s.ID)
			}
			if err != nil {
				return err
			}
		}
	}
	return s.write(ctx, next)
}

// take makes this worker the owner: from here on no other can write the register.
func (s *shard) take(ctx context.Context, token int64) error {
	v, err := s.read(ctx, s.cell)
	if err != nil {
		return err
	}
	if v.Version == "" { // only Shards creates it
		return fmt.Errorf("%w: %s was removed", ErrStale, s.cell)
	}
	s.version = v.Version
	if s.progress, err = decodeProgress(v.Body); err != nil {
		return fmt.Errorf("%s: %w", s.cell, err)
	}
	next, err := s.progress.Take(s.Owner, token, s.claim.Generation, s.vanished)
	if err != nil {
		return fmt.Errorf("%s: %w", s.cell, err)
	}
	if s.progress.Fence == 0 { // no record of the shard is older
		next.SeenEmpty = latest(next.SeenEmpty, s.parentsEnd)
	}
	if err := s.write(ctx, next); err != nil {
		return err
	}
	if err := s.checkMarker(ctx, s.claim); err != nil {
		return err
	}
	return s.confirm(ctx, s.claim)
}

// write replaces the register.
func (s *shard) write(ctx context.Context, next Progress) error {
	next.Nonce = s.Nonce()
	version, err := s.replace(ctx, s.cell, s.version, encodeJSON(next), next.Nonce)
	if err != nil {
		return err
	}
	s.version, s.progress = version, next
	return nil
}

// step takes a shard one intent further.
func (s *shard) step(ctx context.Context) error {
	if s.progress.Intent != nil && !s.sent {
		return s.replay(ctx)
	}
	if s.tail.stream == nil {
		if err := s.begin(ctx); err != nil {
			return err
		}
	}
	runs, err := s.gather(ctx)
	switch {
	case err != nil:
		return err
	case len(runs) == 0:
		return s.writeChecked(ctx, s.progress.Finish())
	case runs[0].step != nil:
		return s.write(ctx, s.stepped(s.progress.Step(*runs[0].step)))
	}
	return s.store(ctx, runs)
}

// stepped ends the recovery with the last step.
func (s *shard) stepped(p Progress) Progress {
	for i := range s.plan.done {
		if s.plan.done[i].step != nil {
			return p
		}
	}
	if len(s.plan.covered) == 0 {
		return p.Reads()
	}
	return p
}

// begin begins to read where the shard's objects end.
func (s *shard) begin(ctx context.Context) (err error) {
	p := s.progress
	s.plan = planner{limits: s.Limits, at: p.Committed, arrival: latest(p.Arrival, p.SeenEmpty)}
	if p.State == Recovering {
		if s.plan.covered, err = s.stored(ctx); err != nil {
			return err
		}
	}
	if s.plan.at == "" && s.fromBegin {
		s.plan.at = begin
	}
	if s.plan.at != "" {
		s.plan.touch()
	}
	if p.State == Recovering && len(s.plan.covered)+len(s.plan.done) == 0 {
		if err := s.write(ctx, p.Reads()); err != nil {
			return err
		}
	}
	for _, r := range s.plan.done { // reading begins behind the last stored record
		p = p.Step(*r.step)
	}
	s.tail = s.tailAt(p)
	return nil
}

// tailAt returns what reads the shard on from a place.
func (s *shard) tailAt(p Progress) tail {
	t := tail{
		stream: claimedStream{s.Stream, s.Archive, s.claim}, shard: s.ID, retention: s.retention, now: s.Now,
		at: p.Committed, anchor: p.Anchor, guessed: p.Guessed, since: s.since, seen: p.SeenEmpty, placed: s.since, vanished: s.vanished,
	}
	if p.Anchor != "" && p.Committed.less(p.Anchor) {
		t.at = p.Anchor.before()
	}
	if !s.fromBegin {
		t.from.Time = s.claim.Origin
	}
	return t
}

// gather reads until some runs are complete, and returns none at the end.
func (s *shard) gather(ctx context.Context) ([]run, error) {
	for try := 4; ; try++ {
		now := s.Now()
		if s.ended {
			s.plan.flush()
		}
		if runs := s.plan.take(now); len(runs) > 0 || s.ended {
			return runs, nil
		}
		f, err := s.tail.next(ctx)
		if errors.Is(err, ErrUnavailable) && ctx.Err() == nil {
			if err := s.pace(ctx, try, err); err != nil {
				return nil, err
			}
			continue
		}
		if err != nil {
			return nil, err
		}
		try = 3
		if err := s.took(ctx, f); err != nil {
			return nil, err
		}
		if err := s.recordQuiet(ctx, f.empty); err != nil {
			return nil, err
		}
	}
}

// quietInterval is the interval between two records that a shard is quiet.
const quietInterval = time.Hour

// recordQuiet writes to the register that a read found no record behind those that are
// stored, if that is news. Later objects are in no earlier minute, so that a takeover
// need not list earlier ones. The moment is by the worker's clock or the store's, whichever
// is earlier: with a clock that is ahead, the register would hide that records expire, for
// as long as the clock was wrong by.
func (s *shard) recordQuiet(ctx context.Context, empty time.Time) error {
	seen := empty.Add(-skew)
	if store := s.Store.StoreTime(s.Now()).Add(-skew); store.Before(seen) {
		seen = store
	}
	stored := s.plan.open.Empty() && len(s.plan.done) == 0 && s.progress.State == Reading
	if empty.IsZero() || !stored || seen.Before(s.plan.arrival.Add(quietInterval)) {
		return nil
	}
	s.plan.arrival = seen
	s.tail.seen = seen
	return s.writeChecked(ctx, s.progress.Quiet(seen))
}

// took plans what was read.
func (s *shard) took(ctx context.Context, f found) error {
	now := s.Now()
	if f.hole {
		s.plan.lost(f.lost, f.lost.after(), f.missed, now)
	}
	for _, e := range f.entries {
		if e.Malformed != nil {
			if err := s.bury(ctx, &e); err != nil {
				return err
			}
		}
		s.plan.add(e, now)
	}
	if !f.end {
		return nil
	}
	if s.tail.expired() {
		if s.Last == "" { // it was open when we took it
			return fmt.Errorf("%w: the shard %s was closed, and where it ends has to be asked first", ErrUnavailable, s.ID)
		}
		s.plan.lost(s.Last, "", s.tail.missed(), now)
	}
	s.ended = true
	for _, left := range s.plan.covered {
		s.plan.pass(left.Start, now)
	}
	return nil
}
