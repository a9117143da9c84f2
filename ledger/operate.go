package ledger

import (
	"time"

	"github.com/pawlhq/pawl/event"
)

// Redrive resets the attempts of a dead or failing row. With force, a committed effect is repeated.
func (r Row) Redrive(force bool, now time.Time) Row {
	r.Dead, r.Attempts, r.RetryAt = false, 0, time.Time{}
	note := ""
	if force {
		r.Want.Generation++
		r.Forced = true
		note = "forced"
	}
	r.addEntry(now, "redriven", note)
	return r
}

// ResetOrder removes the sequencers of a row, because a forged event or a wrong clock left one that
// no real event outranks. The next attempt reads the object. No worker may hold the row, because
// the end of its attempt would restore the sequencer.
//
// The new generations are times, so that no idempotency key repeats.
func (r Row) ResetOrder(now time.Time) Row {
	next := max(uint64(max(now.UnixMilli(), 0)), r.Want.Generation+2)
	r.Want.Sequencer, r.Want.Generation = event.Sequencer{}, next
	if r.Have.Kind != 0 {
		r.Have.Sequencer, r.Have.Generation = event.Sequencer{}, next-1
	}
	r.EventTime, r.Disorder = time.Time{}, 0
	r.addEntry(now, "order reset", "")
	return r
}

// Purgeable reports whether the row of a removal, or with PurgeSettled any settled row, may be
// deleted after the retention time. Its fence must be so old that any later fence is larger.
func (r *Row) Purgeable(p *Policy, now time.Time) bool {
	return r.Settled() && (r.Have.Kind == event.Removed || p.PurgeSettled) && r.Unreadable == nil && !r.Dead && !r.Held() && r.VerifyAt.IsZero() &&
		r.UpdatedAt.Before(now.Add(-p.RowRetention)) && r.Lease.Fence < now.Add(-p.Skew).UnixMilli()
}
