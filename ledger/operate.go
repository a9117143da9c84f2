package ledger

import (
	"time"

	"github.com/pawlhq/pawl/event"
)

// Redrive gives a dead or failing row fresh attempts. With force it also
// demands the effect again where it is committed already.
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

// ResetOrder drops the sequencers, where a forged event, or a store whose clock was
// put back, has left one that no real event outranks. The next event counts,
// whatever its sequencer is, and the object is looked at now. The caller must have
// found that nobody holds the row: the end of an attempt would bring the sequencer
// back.
//
// The new generations are times, so that no version before had the same order: it
// is a part of idempotency keys.
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

// Purgeable reports whether the row may be dropped: a removal, or whatever p gives up,
// settled longer ago than the retention, that nobody holds or is to verify, and
// whose fence is so old that one granted after it is sure to be larger.
func (r *Row) Purgeable(p *Policy, now time.Time) bool {
	return r.Settled() && (r.Have.Kind == event.Removed || p.PurgeSettled) && r.Unreadable == nil && !r.Dead && !r.Held() && r.VerifyAt.IsZero() &&
		r.UpdatedAt.Before(now.Add(-p.RowRetention)) && r.Lease.Fence < now.Add(-p.Skew).UnixMilli()
}
