package archive

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/lock"
)

const (
	// shareParts is the average number of heartbeats per lease.
	shareParts = 6
	// pollParts is the number of polls per lease. A dead worker's shard is free 1.05 TTL plus one
	// poll interval after the last renewal.
	pollParts = 20
	// shareTime bounds the requests of one rebalancing, unless the lease is longer.
	shareTime     = 10 * time.Second
	maxRetryPause = time.Minute
)

type worker struct {
	*Archive
	id            string
	claim         Claim
	mutexes       map[string]*lock.Mutex
	seen          map[string]peerHeartbeat // by register
	last          pollResult
	mode          mode
	heartbeatMode mode
	due           time.Time // next rebalancing
	succeeded     bool

	mu      sync.Mutex
	held    map[string]context.CancelCauseFunc // by shard
	pauses  map[string]retryPause
	storing map[string]time.Time // when each shard began to store its current objects
	wg      sync.WaitGroup
}

type retryPause struct {
	until time.Time
	next  time.Duration
}

var errRebalanced = errors.New("other workers have fewer shards")

func (a *Archive) work(ctx context.Context) error {
	c, err := a.Claim(ctx)
	if err != nil {
		return err
	}
	w := &worker{
		Archive: a, id: a.Nonce(), claim: c, mutexes: map[string]*lock.Mutex{}, seen: map[string]peerHeartbeat{},
		held: map[string]context.CancelCauseFunc{}, pauses: map[string]retryPause{}, storing: map[string]time.Time{},
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer w.wg.Wait()
	defer stop(nil)
	for {
		next, err := w.pollAndBalance(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, ErrDenied) && w.succeeded: // renewed credentials may be accepted
			a.Logger.Warn("cannot rebalance the shards: access denied", "archive", a.Name, "error", err)
		case errors.Is(err, ErrLostRegisters), errors.Is(err, ErrLostClaim), errors.Is(err, ErrClaimed), errors.Is(err, ErrDenied), errors.Is(err, ErrNoStream):
			return err
		case err != nil:
			a.Logger.Warn("cannot rebalance the shards", "archive", a.Name, "error", err)
		}
		if a.Sleep(ctx, next) != nil {
			return nil
		}
	}
}

func (w *worker) pollAndBalance(ctx context.Context) (time.Duration, error) {
	bounded, stop := context.WithTimeout(ctx, max(w.Lease, shareTime))
	defer stop()
	w.recordTurn()
	v, err := w.poll(bounded)
	next := min(w.Lease/pollParts, v.next)
	own := w.health.mode(w.Now())
	due := !w.Now().Before(w.due)
	if !due && (err != nil || v.sameAs(&w.last) && own == w.mode) {
		return next, nil // the next rebalancing reports the error
	}
	every := w.Lease / shareParts
	w.due = w.Now().Add(every/2 + rand.N(every))
	if err == nil {
		w.last, w.mode = v, own
		err = w.writeHeartbeat(bounded, v.version, own)
	}
	if err == nil {
		err = w.balance(ctx, bounded, v, own)
	}
	if err != nil {
		w.recordFailing()
	}
	w.succeeded = w.succeeded || err == nil
	return next, err
}

// releaseTimeout bounds each of the two steps of a release, the register write and the release of
// the lease.
func (a *Archive) releaseTimeout() time.Duration { return a.ShutdownTimeout * 3 / 8 }

func (w *worker) checkClaim(ctx context.Context) error {
	c, err := w.ExistingClaim(ctx)
	if err != nil {
		return err
	}
	if err := w.checkMarker(ctx, c); err != nil {
		return err
	}
	if c.Generation != w.claim.Generation {
		return fmt.Errorf("%w: %s has generation %d since it was recovered, but this worker has generation %d: restart the worker",
			ErrLostRegisters, w.claimCell(), c.Generation, w.claim.Generation)
	}
	return nil
}

// balance releases the shards above this worker's share, and acquires free shards up to it. The
// leases end with ctx, and the requests with bounded. An unhealthy worker releases its shards
// first, because the store may not respond.
func (w *worker) balance(ctx, bounded context.Context, v pollResult, own mode) error {
	if own != sharing && v.peers.sharing > 0 {
		w.releaseSurplus(v.peers.share(0, own))
	}
	if err := w.checkClaim(bounded); err != nil {
		return err
	}
	all, err := w.Shards(bounded, w.claim)
	if err != nil {
		return err
	}
	// Only after the listing, this check proves that the shards belong to the claimed stream.
	retention, err := w.identify(bounded, w.claim)
	if err != nil {
		return err
	}
	open, progress, err := w.unfinished(bounded, all)
	if err != nil {
		return err
	}
	share := v.peers.share(len(open), own)
	mine := w.releaseSurplus(share)
	rand.Shuffle(len(open), func(i, j int) { open[i], open[j] = open[j], open[i] })
	var leases []*leasedShard
	for _, id := range open {
		if len(w.heldShards()) < share && !slices.Contains(mine, id) && !w.isPaused(id) {
			if l := w.acquire(ctx, id); l != nil {
				leases = append(leases, l)
			}
		}
	}
	if len(leases) > 0 {
		w.wg.Go(func() { w.takeOver(ctx, all, leases) })
	}
	w.recordBalance(open, progress, retention)
	return nil
}

// releaseSurplus returns all shards that the worker held before.
func (w *worker) releaseSurplus(share int) (mine []string) {
	mine = w.heldShards()
	rand.Shuffle(len(mine), func(i, j int) { mine[i], mine[j] = mine[j], mine[i] })
	for _, id := range mine[min(share, len(mine)):] {
		w.release(id)
	}
	return mine
}

func (w *worker) unfinished(ctx context.Context, all []Shard) (open []string, progress map[string]Progress, err error) {
	progress = map[string]Progress{}
	for p, err := range w.AllProgress(ctx, w.claim) {
		if err != nil {
			return nil, nil, err
		}
		progress[p.Shard] = p.Progress
	}
	done := func(id string) bool { return progress[id].State == Finished }
	for _, s := range all {
		waits := slices.ContainsFunc(s.Parents, func(parent string) bool {
			return !done(parent) && slices.ContainsFunc(all, func(one Shard) bool { return one.ID == parent })
		})
		if !done(s.ID) && !waits {
			open = append(open, s.ID)
		}
	}
	return open, progress, nil
}

func (w *worker) heldShards() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Sorted(maps.Keys(w.held))
}

func (w *worker) isHeld(id string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.held[id] != nil
}

func (w *worker) release(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if stop := w.held[id]; stop != nil {
		stop(errRebalanced)
	}
	r := w.pauses[id]
	r.until = w.Now().Add(2 * w.Lease / shareParts)
	w.pauses[id] = r
}

func (w *worker) isPaused(id string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.Now().Before(w.pauses[id].until)
}

type leasedShard struct {
	id     string
	lease  *lock.Lease
	ctx    context.Context // ends with the lease, or when the shard is released
	stop   context.CancelCauseFunc
	owned  *shard
	failed error
}

func (w *worker) acquire(ctx context.Context, id string) *leasedShard {
	w.recordTurn()
	m, err := w.mutex(id)
	if err != nil {
		w.Logger.Error("cannot create the lock of a shard", "archive", w.Name, "shard", id, "error", err)
		return nil
	}
	lease, err := m.TryAcquire(ctx)
	if err != nil {
		if !errors.Is(err, lock.ErrHeld) && ctx.Err() == nil {
			w.Logger.Warn("cannot acquire the lease of a shard", "archive", w.Name, "shard", id, "error", err)
		}
		return nil
	}
	l := &leasedShard{id: id, lease: lease}
	l.ctx, l.stop = context.WithCancelCause(lease.Context())
	w.mu.Lock()
	w.held[id] = l.stop
	w.mu.Unlock()
	w.Logger.Debug("acquired a shard", "archive", w.Name, "shard", id, "token", lease.Token())
	return l
}

// takeOver compares all shards with a single listing.
func (w *worker) takeOver(ctx context.Context, all []Shard, leases []*leasedShard) {
	var writes sync.WaitGroup
	for _, l := range leases {
		writes.Go(func() {
			l.owned, l.failed = w.ownShard(l.ctx, w.claim, all, l.id, l.lease.Token(), func() { w.noteStored(l.id) }, func(is bool) { w.noteStoring(l.id, is) })
		})
	}
	writes.Wait()
	var taken []*shard
	for _, l := range leases {
		if l.failed == nil {
			taken = append(taken, l.owned)
		}
	}
	err := w.compareWithListing(ctx, taken)
	for _, l := range leases {
		l.failed = cmp.Or(l.failed, err)
		w.wg.Go(func() { w.runShard(ctx, l) })
	}
}

func (w *worker) runShard(ctx context.Context, l *leasedShard) {
	err := l.failed
	if err == nil {
		err = l.owned.run(l.ctx)
	}
	cause := context.Cause(l.ctx)
	l.stop(nil)
	bounded, free := context.WithTimeout(context.WithoutCancel(ctx), w.releaseTimeout())
	_ = l.lease.Release(bounded) // if the release fails, the lease expires
	free()
	w.noteEnded(l.id, err, cause)
}

func (w *worker) noteStored(id string) {
	w.health.succeed()
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.pauses, id)
}

func (w *worker) noteEnded(id string, err, cause error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.held, id)
	delete(w.storing, id)
	switch {
	case err == nil:
		w.Logger.Info("finished a shard", "archive", w.Name, "shard", id)
		return
	case errors.Is(cause, lock.ErrLost):
		w.Logger.Warn("lost the lease of a shard", "archive", w.Name, "shard", id, "error", cause)
		return
	case cause != nil || errors.Is(err, ErrStale) || errors.Is(err, ErrParent):
		return
	}
	if !errors.Is(err, ErrLostRegisters) && !errors.Is(err, bucket.ErrUnlistable) { // no worker can store the shard
		w.health.fail(w.Now(), w.Lease)
	}
	r := w.pauses[id]
	r.next = min(max(2*r.next, time.Second), maxRetryPause)
	r.until = w.Now().Add(r.next)
	w.pauses[id] = r
	w.Logger.Error("cannot store more of a shard", "archive", w.Name, "shard", id, "retry_in", r.next, "error", err)
}

func (w *worker) noteStoring(id string, is bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.storing, id)
	if is {
		w.storing[id] = w.Now()
	}
}
