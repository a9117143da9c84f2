package archive

import (
	"sync"
	"time"
)

// health limits how many shards a worker may hold, according to its recent attempts to store
// objects. It uses no clock and does no I/O. The zero health has no failed attempts. It is safe for
// concurrent use.
//
// An attempt fails when a shard ends with an error, or when one request fails
// [failedRequestsPerTry] times in a row. If a worker has nothing to store, that is neither a
// failure nor a success.
type health struct {
	mu     sync.Mutex
	failed int // consecutive failed attempts
	pause  time.Duration
	until  time.Time // end of the pause
}

// mode limits the shards of a worker while at least one other worker is in the mode sharing.
type mode string

const (
	sharing mode = "sharing" // the worker holds its share of the shards
	probing mode = "probing" // the worker holds one shard to test the store
	resting mode = "resting" // the worker holds no shard
)

const (
	// unhealthyAfter is the number of consecutive failed attempts after which a worker leaves
	// the mode sharing.
	unhealthyAfter = 3
	// failedRequestsPerTry is the number of failures of one request that count as one failed
	// attempt.
	failedRequestsPerTry = 8
	// The shortest and the longest pause between two probes, in leases.
	minProbePause, maxProbePause = 2, 20
)

// fail records a failed attempt. After the third consecutive failure the worker pauses. Each failed
// probe doubles the pause.
func (h *health) fail(now time.Time, lease time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.failed++; h.failed < unhealthyAfter || now.Before(h.until) {
		return
	}
	h.pause = min(max(2*h.pause, minProbePause*lease), maxProbePause*lease)
	h.until = now.Add(h.pause)
}

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

// share returns how many of the open shards a worker may hold. Workers in the mode sharing leave
// one shard for each worker in the mode probing. If no other worker is sharing, an unhealthy worker
// tries all shards. Without this rule, no worker would store any shard after an outage of the
// store.
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
