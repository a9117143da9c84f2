package archive

import (
	"sync"
	"time"
)

// health limits how many shards a worker may hold, according to its recent attempts to store
// objects. The zero health is healthy. It is safe for concurrent use.
//
// An attempt fails when a shard ends with an error, or when one request fails
// [failedRequestsPerTry] times in a row. A worker without records to store neither fails nor
// succeeds.
type health struct {
	mu     sync.Mutex
	failed int // consecutive failed attempts
	pause  time.Duration
	until  time.Time // end of the pause
}

// mode limits a worker's shards while another worker is in the mode sharing.
type mode string

const (
	sharing mode = "sharing" // the worker holds its share
	probing mode = "probing" // the worker holds one shard to test the store
	resting mode = "resting" // the worker holds none
)

const (
	// unhealthyAfter is the number of consecutive failures that end the mode sharing.
	unhealthyAfter       = 3
	failedRequestsPerTry = 8
	// Pauses between two probes, in leases.
	minProbePause, maxProbePause = 2, 20
)

// fail records a failed attempt. Each failed probe doubles the pause.
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

type peers struct {
	sharing, probing int
}

// share returns how many open shards a worker may hold. Sharing workers leave one shard for each
// probing worker. If no other worker is sharing, an unhealthy worker tries all shards. Otherwise no
// worker would continue after an outage of the store.
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
