package ledger

import (
	"math"
	"time"
)

// Policy holds the times and counts that the transitions go by. The zero Policy
// is of no use: start from [DefaultPolicy].
type Policy struct {
	TTL             time.Duration // how long a lease lasts without renewal
	LeaseEnd        time.Time     // when every lease ends instead, if set
	Skew            time.Duration // how far two machines' clocks may be apart
	Attempts        int           // claims before a row is dead
	Base            time.Duration // first back-off; it doubles with each attempt
	Max             time.Duration // longest back-off
	LateWriteWindow time.Duration // how late a write may land
	RowRetention    time.Duration // how long a settled removal is kept

	// PurgeSettled: Purgeable gives up what is settled and exists, as well. What is
	// lost about such an object later stays lost.
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

// LeaseUntil returns when a lease ends for its holder if it is claimed or renewed at now.
// For other workers it ends Skew later.
func (p *Policy) LeaseUntil(now time.Time) time.Time {
	if !p.LeaseEnd.IsZero() {
		return p.LeaseEnd
	}
	return now.Add(p.TTL)
}

// backoff returns a random wait before the next attempt: full jitter over an
// exponential ceiling. jitter is uniform in [0, 1).
// https://aws.amazon.com/builders-library/timeouts-retries-and-backoff-with-jitter/
func (p *Policy) backoff(attempts int, jitter float64) time.Duration {
	ceiling := math.Ldexp(float64(p.Base), max(attempts, 1)-1) // perhaps infinite
	return time.Duration(jitter * min(ceiling, float64(p.Max)))
}
