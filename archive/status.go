package archive

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// Status is the state of an archive's worker in this process.
type Status struct {
	// LastTurn is the time at which the worker last began to read all leases or to acquire one. It
	// advances within two leases, even if the ledger does not answer. Zero: the worker has not started.
	LastTurn time.Time
	// LastRead is the time at which the worker last read the progress of all shards. Zero: never. The
	// fields below are of that time.
	LastRead time.Time
	Open     int // unfinished shards whose parents are finished
	Held     int // shards that this worker stores
	// Stopped is the number of shards that this worker failed to store and retries. It also counts while
	// the progress cannot be read.
	Stopped int
	// StoredUntil is the arrival time up to which every open shard is stored according to the ledger. A
	// shard with few records delays it by up to 70 minutes. A shard that has stored nothing and was
	// never empty does not count. Zero: unknown.
	StoredUntil time.Time
	Retention   time.Duration // of the stream
	// Err is the error with which the archive has stopped.
	Err error
}

type status struct {
	mu sync.Mutex
	Status
}

func (s *status) set(change func(*Status)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.Status)
}

// Status returns the state of the archive's worker. It sends no request.
func (a *Archive) Status() (s Status) {
	a.status.set(func(now *Status) { s = *now })
	return s
}

func (w *worker) recordTurn() { w.status.set(func(s *Status) { s.LastTurn = w.Now() }) }

func (w *worker) recordBalance(open []string, all map[string]Progress, retention time.Duration) {
	s := Status{LastRead: w.Now(), Open: len(open), Retention: retention}
	for _, id := range open {
		p := all[id]
		if t := latest(p.Arrival, p.SeenEmpty); !t.IsZero() && (s.StoredUntil.IsZero() || t.Before(s.StoredUntil)) {
			s.StoredUntil = t
		}
		if p.Owner == w.Owner && w.isFailing(id) {
			s.Stopped++
		}
	}
	s.Held = len(w.heldShards())
	w.status.set(func(now *Status) {
		s.LastTurn = now.LastTurn
		*now = s
	})
}

// recordFailing counts the failing shards without the progress of all shards, which the worker could
// not read. Another worker may store some of them.
func (w *worker) recordFailing() {
	ids := w.heldShards()
	w.mu.Lock()
	ids = slices.AppendSeq(ids, maps.Keys(w.pauses))
	w.mu.Unlock()
	slices.Sort(ids)
	n := 0
	for _, id := range slices.Compact(ids) {
		if w.isFailing(id) {
			n++
		}
	}
	w.status.set(func(s *Status) { s.Stopped = n })
}

// isFailing reports whether the last attempt to store a shard failed, or makes no progress because it
// repeats a request. An attempt counts as successful if it stored an object, or has lasted for
// maxRetryPause and has nothing to store.
func (w *worker) isFailing(id string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.pauses[id]
	failed := r.next > 0
	if since, storing := w.storing[id]; storing {
		return failed || w.Now().Sub(since) >= signatureValidity
	}
	return failed && (w.held[id] == nil || w.Now().Before(r.until.Add(w.Lease+maxRetryPause)))
}
