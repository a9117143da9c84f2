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

	"github.com/pawlhq/pawl/lock"
)

// Times of a worker.
const (
	leaseTTL = 30 * time.Second
	// looks is the number of times during a lease that a worker looks for shards
	// without a worker.
	looks = 6
	// patience is the number of looks after which a worker without a sign of life is
	// taken for gone.
	patience = 4
	// longestPause is how long a shard rests after it failed again and again.
	longestPause = time.Minute
)

// worker is one of several that share an archive's shards.
type worker struct {
	*Archive
	id      string
	claim   Claim
	mutexes map[string]*lock.Mutex
	seen    map[string]sign // of other workers

	mu    sync.Mutex
	held  map[string]context.CancelCauseFunc // by shard
	rests map[string]rest
	wg    sync.WaitGroup
}

// sign is the last sign of life of a worker, and how many looks ago it was new.
type sign struct {
	version string
	age     int
}

// rest is how long a shard is left alone after a failure.
type rest struct {
	until time.Time
	next  time.Duration
}

var errSurplus = errors.New("other workers have fewer shards")

// Run stores all shards, together with other workers, until ctx ends. It returns an
// error if the archive cannot be worked on at all; what goes wrong with one shard
// is logged, and tried again.
func (a *Archive) Run(ctx context.Context) error {
	c, err := a.Claim(ctx)
	if err != nil {
		return err
	}
	w := &worker{
		Archive: a, id: a.Nonce(), claim: c, mutexes: map[string]*lock.Mutex{}, seen: map[string]sign{},
		held: map[string]context.CancelCauseFunc{}, rests: map[string]rest{},
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer w.wg.Wait()
	defer stop(nil)
	for begun := false; ; {
		err := w.look(ctx)
		begun = begun || err == nil
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, ErrDenied) && begun: // credentials are renewed now and then
			a.Log.Warn("looking for shards was denied", "archive", a.Name, "error", err)
		case errors.Is(err, ErrLostRegisters), errors.Is(err, ErrClaimed), errors.Is(err, ErrDenied), errors.Is(err, ErrNoStream):
			return err
		case err != nil:
			a.Log.Warn("looking for shards failed", "archive", a.Name, "error", err)
		}
		every := a.lease() / looks
		if a.Sleep(ctx, every/2+rand.N(every)) != nil {
			return nil
		}
	}
}

func (a *Archive) lease() time.Duration { return cmp.Or(a.Lease, leaseTTL) }

// checkClaim ends a worker whose archive was recovered, or has lost its claim: no PUT
// of its would be sent.
func (w *worker) checkClaim(ctx context.Context) error {
	c, err := w.Claimed(ctx)
	if err != nil {
		return err
	}
	if err := w.checkMarker(ctx, c); err != nil {
		return err
	}
	if c.Generation != w.claim.Generation {
		return fmt.Errorf("%w: %s is in generation %d since it was recovered, and this worker in %d: start it again",
			ErrLostRegisters, w.claimCell(), c.Generation, w.claim.Generation)
	}
	return nil
}

// look takes shards that nobody stores, up to this worker's share, and gives back
// what is above it.
func (w *worker) look(ctx context.Context) error {
	if err := w.checkClaim(ctx); err != nil {
		return err
	}
	all, err := w.Shards(ctx, w.claim)
	if err != nil {
		return err
	}
	open, err := w.unfinished(ctx, all)
	if err != nil {
		return err
	}
	others, err := w.others(ctx)
	if err != nil {
		return err
	}
	share := (len(open) + others) / (others + 1)
	mine := w.holds()
	for _, id := range mine[min(share, len(mine)):] {
		w.giveBack(id)
	}
	rand.Shuffle(len(open), func(i, j int) { open[i], open[j] = open[j], open[i] })
	for _, id := range open {
		if len(w.holds()) < share && !slices.Contains(mine, id) && !w.resting(id) {
			w.try(ctx, all, id)
		}
	}
	return nil
}

// unfinished returns the shards that can be stored now: they are not finished, and
// their parents are.
func (w *worker) unfinished(ctx context.Context, all []Shard) (open []string, err error) {
	done := map[string]bool{}
	for p, err := range w.AllProgress(ctx, w.claim) {
		if err != nil {
			return nil, err
		}
		done[p.Shard] = p.State == Finished
	}
	for _, s := range all {
		waits := slices.ContainsFunc(s.Parents, func(parent string) bool {
			return !done[parent] && slices.ContainsFunc(all, func(one Shard) bool { return one.ID == parent })
		})
		if !done[s.ID] && !waits {
			open = append(open, s.ID)
		}
	}
	return open, nil
}

// others gives a sign of life, and counts the workers of which there was one of late.
func (w *worker) others(ctx context.Context) (n int, err error) {
	own := w.register("worker", w.id)
	v, err := w.read(ctx, own)
	if err == nil {
		_, err = own.Write(ctx, v.Version, encodeJSON(map[string]any{"owner": w.Owner, "shards": w.holds(), "nonce": w.Nonce()}))
	}
	if err != nil {
		return 0, err
	}
	prefix := "archive/" + w.Name + "/worker/"
	for r, err := range w.Registers.ListRegisters(ctx, prefix) {
		if err != nil {
			return 0, err
		}
		s, known := w.seen[r.Name]
		switch {
		case r.Name == prefix+w.id:
			continue
		case s.version != r.Version:
			s.version, s.age = r.Version, 0
			if !known {
				s.age = patience // it may have been gone for long
			}
		default:
			s.age++
		}
		w.seen[r.Name] = s
		if s.age < patience {
			n++
		}
	}
	return n, nil
}

func (w *worker) holds() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Sorted(maps.Keys(w.held))
}

func (w *worker) giveBack(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if stop := w.held[id]; stop != nil {
		stop(errSurplus)
	}
	w.rests[id] = rest{until: w.Now().Add(2 * w.lease() / looks)}
}

func (w *worker) resting(id string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.Now().Before(w.rests[id].until)
}

// try takes a shard's lease if it is free.
func (w *worker) try(ctx context.Context, all []Shard, id string) {
	if w.mutexes[id] == nil {
		m, err := lock.OnRegister(w.Registers, "archive/"+w.Name+"/lease/"+id, lock.Config{TTL: w.lease(), Owner: w.Owner})
		if err != nil {
			w.Log.Error("the shard cannot be locked", "archive", w.Name, "shard", id, "error", err)
			return
		}
		w.mutexes[id] = m
	}
	lease, err := w.mutexes[id].TryAcquire(ctx)
	if err != nil {
		if !errors.Is(err, lock.ErrHeld) && ctx.Err() == nil {
			w.Log.Warn("the lease of a shard cannot be taken", "archive", w.Name, "shard", id, "error", err)
		}
		return
	}
	within, stop := context.WithCancelCause(lease.Context())
	w.mu.Lock()
	w.held[id] = stop
	w.mu.Unlock()
	w.wg.Go(func() {
		err := w.Drive(within, w.claim, all, id, lease.Token())
		stop(nil)
		_ = lease.Release(context.WithoutCancel(ctx)) // at worst it runs out
		w.ended(ctx, id, err)
	})
}

// ended notes how a shard was left.
func (w *worker) ended(ctx context.Context, id string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.held, id)
	switch {
	case ctx.Err() != nil || errors.Is(err, context.Canceled) || errors.Is(err, ErrStale) || errors.Is(err, ErrParent):
		return
	case err == nil:
		w.Log.Info("a shard is finished", "archive", w.Name, "shard", id)
		return
	}
	r := w.rests[id]
	r.next = min(max(2*r.next, time.Second), longestPause)
	r.until = w.Now().Add(r.next)
	w.rests[id] = r
	w.Log.Error("a shard could not be stored further", "archive", w.Name, "shard", id, "again_in", r.next, "error", err)
}
