package ledger

import (
	"math"
	"time"
)

// Policy has the times and counts of the transitions. The zero Policy is invalid.
type Policy struct {
	TTL             time.Duration // duration of a lease without renewal
	LeaseEnd        time.Time     // fixed end of every lease; zero: TTL applies
	Skew            time.Duration // maximum difference between two clocks
	Attempts        int           // claims before a row is dead
	Base            time.Duration // first back-off; doubles with each attempt
	Max             time.Duration // maximum back-off
	LateWriteWindow time.Duration // maximum delay of a write after its attempt
	RowRetention    time.Duration // retention time of rows of settled removals

	// PurgeSettled makes settled rows of existing objects purgeable too. Later losses of such
	// objects stay undetected.
	PurgeSettled bool
}

// DefaultPolicy returns the defaults.
func DefaultPolicy() Policy {
	return Policy{
		TTL:             30 * time.Second,
		Skew:            5 * time.Second,
		Attempts:        8,
		Base:            time.Second,
		Max:             5 * time.Minute,
		LateWriteWindow: 15 * time.Minute,
		RowRetention:    30 * 24 * time.Hour,
	}
}

// LeaseUntil returns the end of a lease for its holder. For other workers it ends Skew later.
func (p *Policy) LeaseUntil(now time.Time) time.Time {
	if !p.LeaseEnd.IsZero() {
		return p.LeaseEnd
	}
	return now.Add(p.TTL)
}

// https://aws.amazon.com/builders-library/timeouts-retries-and-backoff-with-jitter/
func (p *Policy) backoff(attempts int, jitter float64) time.Duration {
	ceiling := math.Ldexp(float64(p.Base), max(attempts, 1)-1) // may be infinite
	return time.Duration(jitter * min(ceiling, float64(p.Max)))
}
