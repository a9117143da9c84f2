package archive

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawlhq/pawl/cell"
)

type shard struct {
	*Archive
	Shard
	claim         Claim
	retention     time.Duration
	since         time.Time // later records must exist in the stream
	fromBeginning bool
	// parentsEnd is the latest time at which a parent was open; zero if unknown.
	parentsEnd    time.Time
	unknownObject error // see compareWithListing

	cell     cell.Cell
	version  string
	progress Progress

	tail      tail
	planner   planner
	allRead   bool
	sent      bool
	onStored  func()     // called after each stored object
	onStoring func(bool) // called when store begins, and when it has succeeded
}

// run must follow compareWithListing.
func (s *shard) run(ctx context.Context) error {
	if s.unknownObject != nil {
		return s.unknownObject
	}
	var err error
	for err == nil && s.progress.State != Finished {
		err = s.runOnce(ctx)
	}
	if err != nil && ctx.Err() != nil {
		bounded, stop := context.WithTimeout(context.WithoutCancel(ctx), s.releaseTimeout())
		defer stop()
		return errors.Join(err, s.commitStored(bounded))
	}
	return err
}

// commitStored commits the intent, so that the next owner need not replay it.
func (s *shard) commitStored(ctx context.Context) error {
	if s.progress.Intent == nil {
		return nil
	}
	return s.writeChecked(ctx, s.progress.Commit())
}

// writeChecked commits the intent only if its objects still exist: their upload may be hours ago.
// The next owner stores deleted objects again.
func (s *shard) writeChecked(ctx context.Context, next Progress) error {
	if s.progress.Intent != nil {
		for _, o := range s.progress.Intent.Objects {
			stored, err := s.isStored(ctx, &o)
			if err == nil && !stored {
				err = fmt.Errorf("%s was announced but is not stored: it stays pending, and the next owner of shard %s stores it", s.object(o.Key), s.ID)
			}
			if err != nil {
				return err
			}
		}
	}
	return s.write(ctx, next)
}

func (s *shard) takeOwnership(ctx context.Context, token int64) error {
	v, err := s.read(ctx, s.cell)
	if err != nil {
		return err
	}
	if v.Version == "" { // only Shards creates registers
		return fmt.Errorf("%w: %s was removed", ErrStale, s.cell)
	}
	s.version = v.Version
	if s.progress, err = decodeProgress(v.Body); err != nil {
		return fmt.Errorf("%s: %w", s.cell, err)
	}
	next, err := s.progress.TakeOwnership(s.Owner, token, s.claim.Generation, s.unlisted)
	if err != nil {
		return fmt.Errorf("%s: %w", s.cell, err)
	}
	if s.progress.Fence == 0 { // no record is older than parentsEnd, because the shard has had no owner
		next.SeenEmpty = latest(next.SeenEmpty, s.parentsEnd)
	}
	if err := s.write(ctx, next); err != nil {
		return err
	}
	if err := s.checkMarker(ctx, s.claim); err != nil {
		return err
	}
	return s.confirmClaim(ctx, s.claim)
}

func (s *shard) write(ctx context.Context, next Progress) error {
	next.Nonce = s.Nonce()
	version, err := s.replace(ctx, s.cell, s.version, encodeJSON(next), next.Nonce)
	if err != nil {
		return err
	}
	s.version, s.progress = version, next
	return nil
}

func (s *shard) runOnce(ctx context.Context) error {
	if s.progress.Intent != nil && !s.sent {
		return s.replay(ctx)
	}
	if s.tail.stream == nil {
		if err := s.startReading(ctx); err != nil {
			return err
		}
	}
	runs, err := s.gatherRuns(ctx)
	switch {
	case err != nil:
		return err
	case len(runs) == 0:
		return s.writeChecked(ctx, s.progress.Finish())
	case runs[0].stored != nil:
		return s.write(ctx, s.endRecoveryIfDone(s.progress.SkipStored(*runs[0].stored)))
	}
	return s.store(ctx, runs)
}

func (s *shard) endRecoveryIfDone(p Progress) Progress {
	for i := range s.planner.complete {
		if s.planner.complete[i].stored != nil {
			return p
		}
	}
	if len(s.planner.covered) == 0 {
		return p.EndRecovery()
	}
	return p
}

func (s *shard) startReading(ctx context.Context) (err error) {
	p := s.progress
	s.planner = planner{limits: s.Limits, end: p.Committed, arrival: latest(p.Arrival, p.SeenEmpty)}
	if p.State == Recovering {
		if s.planner.covered, err = s.listStored(ctx); err != nil {
			return err
		}
	}
	if s.planner.end == "" && s.fromBeginning {
		s.planner.end = begin
	}
	if s.planner.end != "" {
		s.planner.skipAdjacent()
	}
	if p.State == Recovering && len(s.planner.covered)+len(s.planner.complete) == 0 {
		if err := s.write(ctx, p.EndRecovery()); err != nil {
			return err
		}
	}
	for _, r := range s.planner.complete { // reading starts after the last stored record
		p = p.SkipStored(*r.stored)
	}
	s.tail = s.tailAt(p)
	return nil
}

func (s *shard) tailAt(p Progress) tail {
	t := tail{
		stream: claimedStream{s.Stream, s.Archive, s.claim}, shard: s.ID, retention: s.retention, now: s.Now,
		at: p.Committed, anchor: p.Anchor, guessed: p.Guessed, since: s.since, seenEmpty: p.SeenEmpty, positionTime: s.since, unlisted: s.unlisted,
	}
	if p.Anchor != "" && p.Committed.less(p.Anchor) {
		t.at = p.Anchor.before()
	}
	if !s.fromBeginning {
		t.start.Time = s.claim.Origin
	}
	return t
}

// gatherRuns returns none at the end of the shard.
func (s *shard) gatherRuns(ctx context.Context) ([]run, error) {
	for try := 4; ; try++ {
		now := s.Now()
		if s.allRead {
			s.planner.flush()
		}
		if runs := s.planner.nextRuns(now); len(runs) > 0 || s.allRead {
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
		if err := s.plan(ctx, f); err != nil {
			return nil, err
		}
		if err := s.recordQuiet(ctx, f.emptyAt); err != nil {
			return nil, err
		}
	}
}

const quietInterval = time.Hour

// recordQuiet notes a time before which no unread record arrived, so the next owner lists fewer
// minutes. It uses the earlier of the worker's and the store's time: a fast clock would hide
// expired records.
func (s *shard) recordQuiet(ctx context.Context, empty time.Time) error {
	seen := empty.Add(-maxClockSkew)
	if store := s.Store.StoreTime(s.Now()).Add(-maxClockSkew); store.Before(seen) {
		seen = store
	}
	stored := s.planner.open.Empty() && len(s.planner.complete) == 0 && s.progress.State == Reading
	if empty.IsZero() || !stored || seen.Before(s.planner.arrival.Add(quietInterval)) {
		return nil
	}
	s.planner.arrival = seen
	s.tail.seenEmpty = seen
	return s.writeChecked(ctx, s.progress.RecordQuiet(seen))
}

func (s *shard) plan(ctx context.Context, f readResult) error {
	now := s.Now()
	if f.hasLost {
		s.planner.addLost(f.lostUpTo, f.lostUpTo.after(), f.knownLost, now)
	}
	for _, e := range f.records {
		if e.Malformed != nil {
			if err := s.saveMalformed(ctx, &e); err != nil {
				return err
			}
		}
		s.planner.add(e, now)
	}
	if !f.end {
		return nil
	}
	if s.tail.mayHaveLost() {
		if s.Last == "" { // the shard was open when this worker took it over
			return fmt.Errorf("%w: shard %s was closed, and its last number must be requested first", ErrUnavailable, s.ID)
		}
		s.planner.addLost(s.Last, "", s.tail.knownLost(), now)
	}
	s.allRead = true
	for _, left := range s.planner.covered {
		s.planner.skipUpTo(left.Start, now)
	}
	return nil
}
