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
	r.note(now, "redriven", note)
	return r
}

// Forget reports whether the row may be dropped: a removal, or whatever p gives up,
// settled longer ago than the retention, that nobody holds or is to verify, and
// whose fence is so old that one granted after it is sure to be larger.
func (r *Row) Forget(p *Policy, now time.Time) bool {
	return r.Settled() && (r.Have.Kind == event.Removed || p.PurgeSettled) && r.Unreadable == nil && !r.Dead && !r.Held() && r.VerifyAt.IsZero() &&
		r.UpdatedAt.Before(now.Add(-p.Retain)) && r.Lease.Fence < now.Add(-p.Skew).UnixMilli()
}
