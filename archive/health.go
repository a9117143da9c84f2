package archive

import (
	"sync"
	"time"
)

// health decides from the results of a worker's tries to store objects how many shards
// the worker may hold. It has no clock and does no I/O. The zero health is good. It is
// safe for concurrent use.
//
// A try fails when a shard ends with an error, or when a request has failed
// [hopelessTries] times in a row. Having nothing to store is neither a failure nor a
// success.
type health struct {
	mu     sync.Mutex
	failed int // tries in a row
	pause  time.Duration
	until  time.Time // end of the pause
}

// mode is what a worker may hold while a worker in the mode sharing exists.
type mode string

const (
	sharing mode = "sharing" // its share of the shards
	probing mode = "probing" // one shard
	resting mode = "resting" // none
)

const (
	// sickAfter is the number of failed tries in a row after which a worker no longer
	// shares.
	unhealthyAfter = 3
	// hopelessTries is the number of failures of one request that count as one failed try.
	failedRequestsPerTry = 8
	// The shortest and the longest pause between two probes, in leases.
	minProbePause, maxProbePause = 2, 20
)

// fail notes a failed try. From the third one in a row on the worker rests, and longer
// after each probe that fails.
func (h *health) fail(now time.Time, lease time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.failed++; h.failed < unhealthyAfter || now.Before(h.until) {
		return
	}
	h.pause = min(max(2*h.pause, minProbePause*lease), maxProbePause*lease)
	h.until = now.Add(h.pause)
}

// succeed notes that an object was stored.
func (h *health) succeed() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.failed, h.pause, h.until = 0, 0, time.Time{}
}

func (h *health) mode(now time.Time) mode {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.failed < unhealthyAfter:
		return sharing
	case now.Before(h.until):
		return resting
	}
	return probing
}

// peers counts the other workers with a recent heartbeat.
type peers struct {
	sharing, probing int
}

// share returns how many of the open shards a worker may hold. The workers in the mode
// sharing leave one shard to each prober. A sick worker tries all shards if no other
// worker shares: otherwise no worker would store them while the store fails for all.
func (p peers) share(open int, own mode) int {
	switch {
	case own == sharing:
		return (max(open-p.probing, 1) + p.sharing) / (p.sharing + 1)
	case p.sharing == 0:
		return open
	case own == probing:
		return 1
	}
	return 0
}
