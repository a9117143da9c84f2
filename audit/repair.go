package audit

import (
	"context"
	"errors"
	"time"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/worker"
)

// maxRounds bounds the comparisons of a row that keeps changing. Its workers settle it without
// the audit.
const maxRounds = 10

// repair verifies the candidates and writes the losses to the ledger. It loads the rows, then
// sends HEAD requests, then swaps unchanged rows. It repeats all three steps for changed rows.
func (w *walk) repair(ctx context.Context) error {
	open := w.candidates
	w.candidates = w.candidates[:0]
	for range maxRounds {
		if len(open) == 0 {
			return nil
		}
		var err error
		if open, err = w.round(ctx, open); err != nil {
			return err
		}
	}
	return nil
}

func (w *walk) round(ctx context.Context, open []candidate) (again []candidate, err error) {
	if open, err = w.resolveVersions(ctx, open); err != nil {
		return nil, err
	}
	rows, err := w.load(ctx, open)
	if err != nil {
		return nil, err
	}
	heads, err := w.headAll(ctx, open)
	if err != nil {
		return nil, err
	}
	if err := w.readWatermark(ctx); err != nil { // after the rows, because a purge may be running
		return nil, err
	}
	var changes []ledger.Change
	var losses []Finding
	now := w.Now()
	for i := range heads {
		if heads[i].inaccessible {
			w.counts.Inaccessible++
			continue
		}
		next, loss := w.decide(&rows[i], heads[i].Observation, now)
		if next == nil {
			continue
		}
		next.Nonce = w.Nonce()
		changes = append(changes, ledger.Change{Key: next.RowKey, Expect: rows[i].Nonce, Row: next})
		losses = append(losses, loss)
	}
	if again, err = w.write(ctx, changes, losses); err != nil {
		return nil, err
	}
	return again, w.findContradictions(ctx, open, heads)
}

func (w *walk) decide(row *ledger.Row, seen Observation, now time.Time) (*ledger.Row, Finding) {
	if w.possiblyPurged(row, seen) {
		return nil, None
	}
	next, loss := Decide(*row, seen, w.SettleWindow, now)
	switch {
	case loss == LostRemoval && w.Brake == nil:
		w.counts.Removable++
		return nil, loss
	case loss != LostRemoval && w.Brake != nil:
		return nil, loss
	case loss == None && !w.needsRedrive(&next, now):
		return nil, loss
	case loss == None:
		next = next.Redrive(false, now)
	}
	return &next, loss
}

// write returns the candidates whose row changed meanwhile.
func (w *walk) write(ctx context.Context, changes []ledger.Change, losses []Finding) (again []candidate, err error) {
	if len(changes) == 0 || !w.mayRaise(len(changes)) {
		return nil, nil
	}
	if w.DryRun {
		for i := range changes {
			w.recordFinding(changes[i].Key, losses[i])
		}
		return nil, nil
	}
	out, err := w.Ledger.Swap(ctx, changes)
	for i := range out {
		switch {
		case out[i].Applied:
			w.recordFinding(changes[i].Key, losses[i])
		case out[i].Err == nil:
			again = append(again, candidate{key: changes[i].Key, listed: losses[i] != LostRemoval})
			w.notRaised(1)
		}
	}
	return again, err
}

func (w *walk) mayRaise(n int) bool {
	if w.Brake == nil || w.Brake.reserve(n) {
		return true
	}
	w.counts.Withheld += int64(n)
	return false
}

func (w *walk) notRaised(n int) {
	if w.Brake != nil {
		w.Brake.unreserve(n)
	}
}

func (w *walk) recordFinding(key ledger.RowKey, loss Finding) {
	w.counts.addFinding(loss, !w.DryRun)
	if w.Found != nil && loss != None {
		w.Found(key, loss.String(), !w.DryRun)
	}
}

type headResult struct {
	Observation
	inaccessible bool
	err          error
}

const maxHeadFailures = 8

// headAll marks objects that the store cannot serve as inaccessible. If more than maxHeadFailures
// requests all fail, the store is unavailable, and headAll returns an error.
func (w *walk) headAll(ctx context.Context, open []candidate) ([]headResult, error) {
	all := make([]headResult, len(open))
	w.Each(len(open), func(i int) { all[i] = w.head(ctx, open[i].key.Object()) })
	w.counts.Inspected += int64(len(open))
	failed := 0
	for i := range all {
		if err := all[i].err; err != nil {
			failed++
			if !errors.Is(err, bucket.ErrUnavailable) || ctx.Err() != nil || failed == len(all) && failed > maxHeadFailures {
				return nil, err
			}
			all[i].inaccessible = true
		}
	}
	return all, nil
}

func (w *walk) head(ctx context.Context, ref event.Object) headResult {
	info, err := w.Objects.Head(ctx, ref)
	switch {
	case errors.Is(err, bucket.ErrNotFound):
		return headResult{}
	case errors.Is(err, bucket.ErrDenied) && !errors.Is(err, bucket.ErrCredentials), errors.Is(err, bucket.ErrInvalid):
		return headResult{inaccessible: true} // the error concerns this object only
	case err != nil:
		return headResult{err: err}
	}
	return headResult{Observation: Observation{Exists: true, Identity: worker.Identify(&info)}}
}

// load returns only the key for a missing row.
func (w *walk) load(ctx context.Context, open []candidate) ([]ledger.Row, error) {
	keys, at := make([]ledger.RowKey, len(open)), make(map[ledger.RowKey]int, len(open))
	rows := make([]ledger.Row, len(open))
	for i := range open {
		keys[i], at[open[i].key] = open[i].key, i
		rows[i].RowKey = open[i].key
	}
	found, err := w.Ledger.Load(ctx, keys)
	for i := range found {
		rows[at[found[i].RowKey]] = found[i]
	}
	return rows, err
}

// resolveVersions sets missing version ids to the latest version. It drops objects that are gone.
func (w *walk) resolveVersions(ctx context.Context, open []candidate) (named []candidate, err error) {
	var nameless []candidate
	for _, c := range open {
		if c.resolveVersion {
			nameless = append(nameless, c)
			continue
		}
		named = append(named, c)
	}
	if len(nameless) == 0 {
		return open, nil
	}
	heads, err := w.headAll(ctx, nameless)
	for i := range heads {
		switch {
		case heads[i].inaccessible:
			w.counts.Inaccessible++
		case heads[i].Exists:
			key := nameless[i].key
			key.VersionID = heads[i].Identity.VersionID
			named = append(named, candidate{key: key})
		}
	}
	return named, err
}
