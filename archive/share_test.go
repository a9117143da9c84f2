package archive_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawlhq/pawl/archive"
	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
)

type killableLedger struct {
	*ledger.Rows
	dead atomic.Bool
}

var errDied = errors.New("the process has died")

func (m *killableLedger) ReadRegister(ctx context.Context, name string) (ledger.Register, error) {
	if m.dead.Load() {
		return ledger.Register{}, errDied
	}
	return m.Rows.ReadRegister(ctx, name)
}

func (m *killableLedger) WriteRegister(ctx context.Context, name, version string, value []byte) (string, error) {
	if m.dead.Load() {
		return "", errDied
	}
	return m.Rows.WriteRegister(ctx, name, version, value)
}

func (m *killableLedger) RemoveRegister(ctx context.Context, name, version string) error {
	if m.dead.Load() {
		return errDied
	}
	return m.Rows.RemoveRegister(ctx, name, version)
}

func (m *killableLedger) ListRegisters(ctx context.Context, prefix string) iter.Seq2[ledger.Register, error] {
	if m.dead.Load() {
		return func(yield func(ledger.Register, error) bool) { yield(ledger.Register{}, errDied) }
	}
	return m.Rows.ListRegisters(ctx, prefix)
}

func (p *env) owners() map[string]int {
	p.Helper()
	a := p.archive("ndjson")
	c, err := a.Claim(p.Context())
	if err != nil {
		p.Fatal(err)
	}
	n := map[string]int{}
	for one, err := range a.AllProgress(p.Context(), c) {
		if err != nil {
			p.Fatal(err)
		}
		n[one.Owner]++
	}
	return n
}

// awaitOwners waits until each worker owns its number of shards in want.
func (p *env) awaitOwners(limit time.Duration, want map[string]int) time.Duration {
	p.Helper()
	began := time.Now()
	for !maps.Equal(p.owners(), want) {
		if time.Since(began) >= limit {
			p.Fatalf("after %v the shards are owned like this: %v, want %v\n%s", limit, p.owners(), want, p.log.String())
		}
		time.Sleep(500 * time.Millisecond)
	}
	return time.Since(began)
}

func (p *env) worker(name string, change func(*archive.Archive)) {
	a := p.archive("ndjson")
	a.Owner = name
	change(a)
	stop := p.run(a)
	p.stops = append(p.stops, stop)
}

func (p *env) stopWorkers() {
	p.Helper()
	for _, stop := range p.stops {
		if err := stop(); err != nil {
			p.Error(err)
		}
	}
}

func TestTakeoverTime(t *testing.T) {
	var slowest time.Duration
	for range 20 {
		withEnv(t, 8, func(p *env) {
			registers := &killableLedger{Rows: p.ledger}
			p.worker("one", func(a *archive.Archive) { a.Registers = registers })
			p.worker("two", func(*archive.Archive) {})
			p.awaitOwners(time.Minute, map[string]int{"one": 4, "two": 4})
			time.Sleep(time.Minute + rand.N(10*time.Second))
			registers.dead.Store(true)
			slowest = max(slowest, p.awaitOwners(35*time.Second, map[string]int{"two": 8}))
			p.stopWorkers()
		})
	}
	t.Logf("the slowest of 20 takeovers took %v", slowest)
}

type failingStore struct {
	archive.Store
	denied atomic.Pointer[error]
}

func (s *failingStore) set(err error) { s.denied.Store(&err) }

func (s *failingStore) err() error {
	if e := s.denied.Load(); e != nil {
		return *e
	}
	return nil
}

func (s *failingStore) PutSigned(ctx context.Context, ref event.Object, o bucket.Object, c bucket.Condition, signed time.Time, valid time.Duration) (string, error) {
	if err := s.err(); err != nil {
		return "", err
	}
	return s.Store.PutSigned(ctx, ref, o, c, signed, valid)
}

// The shards of a failing worker move to another worker, and return after the failure.
func TestFailingWorkerLosesItsShards(t *testing.T) {
	for _, c := range []struct {
		name  string
		err   error
		limit time.Duration // until the healthy worker owns all shards
	}{
		{"denied", bucket.ErrDenied, 45 * time.Second},
		{"unreachable", bucket.ErrUnclear, 3 * time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			withEnv(t, 8, func(p *env) {
				store := &failingStore{Store: p.store}
				p.worker("sick", func(a *archive.Archive) { a.Store, a.Stream = store, slowStream{a.Stream, time.Second} })
				p.worker("well", func(a *archive.Archive) { a.Stream = slowStream{a.Stream, time.Second} })
				p.awaitOwners(time.Minute, map[string]int{"sick": 4, "well": 4})
				store.set(c.err)
				records := p.produce()
				p.awaitOwners(c.limit, map[string]int{"well": 8})
				time.Sleep(archive.FailureTime) // the failing worker probes
				store.set(nil)
				p.awaitOwners(12*time.Minute, map[string]int{"sick": 4, "well": 4})
				records.stop()
				time.Sleep(time.Minute)
				p.stopWorkers()
				p.expectVerified(p.archive("ndjson"), records.n)
				if late := p.longestDelay(); late > 4*time.Minute {
					t.Errorf("an object was stored %v after its newest record had arrived", late)
				}
			})
		})
	}
}

func TestAllWorkersFail(t *testing.T) {
	withEnv(t, 8, func(p *env) {
		stores := []*failingStore{{Store: p.store}, {Store: p.store}}
		for i, s := range stores {
			p.worker(fmt.Sprint(i), func(a *archive.Archive) { a.Store, a.Stream = s, slowStream{a.Stream, time.Second} })
		}
		p.awaitOwners(time.Minute, map[string]int{"0": 4, "1": 4})
		for _, s := range stores {
			s.set(bucket.ErrDenied)
		}
		records := p.produce()
		time.Sleep(archive.FailureTime * 3 / 2)
		stores[0].set(nil)
		time.Sleep(3 * time.Minute)
		healed := time.Now()
		time.Sleep(10 * time.Minute)
		records.stop()
		time.Sleep(time.Minute)
		stores[1].set(nil)
		p.stopWorkers()
		p.expectVerified(p.archive("ndjson"), records.n)
		for key, at := range p.storeTimes() {
			if n, _ := archive.ParseKey("p/", key); at.Sub(n.Minute) > 4*time.Minute && at.After(healed) {
				t.Errorf("%s was stored at %v", key, at)
			}
		}
	})
}

// producer puts one record per second into the shards in turn.
type producer struct {
	n    int
	stop func()
}

func (p *env) produce() *producer {
	r, done, quit := &producer{}, make(chan struct{}), make(chan struct{})
	shards := p.shards()
	go func() {
		defer close(done)
		for {
			select {
			case <-quit:
				return
			case <-p.ctx.Done():
				return
			case <-time.After(time.Second):
			}
			if _, err := p.stream.Put(p.ctx, shards[r.n%len(shards)], "key", bytes.Repeat([]byte("x"), 50)); p.ctx.Err() != nil {
				return // the test has failed
			} else if err != nil {
				panic(err)
			}
			r.n++
		}
	}()
	r.stop = func() { close(quit); <-done }
	return r
}

func (p *env) storeTimes() map[string]time.Time {
	p.Helper()
	all := map[string]time.Time{}
	for info, err := range p.store.List(p.Context(), "b", "p/20", "") {
		if err != nil {
			p.Fatal(err)
		}
		all[info.Key] = info.ModTime
	}
	return all
}

// longestDelay measures from the minute in an object's key to its upload.
func (p *env) longestDelay() (d time.Duration) {
	for key, at := range p.storeTimes() {
		if n, err := archive.ParseKey("p/", key); err == nil {
			d = max(d, at.Sub(n.Minute))
		}
	}
	return d
}

func TestStoredObjectResetsPause(t *testing.T) {
	withEnv(t, 1, func(p *env) {
		store := &failingStore{Store: p.store}
		p.worker("one", func(a *archive.Archive) { a.Store = store })
		shard := p.shards()[0]
		for range 3 {
			store.set(bucket.ErrDenied)
			p.put(shard, 1)
			time.Sleep(time.Minute)
			store.set(nil)
			time.Sleep(3 * time.Minute)
		}
		p.stopWorkers()
		var pauses []string
		for line := range strings.Lines(p.log.String()) {
			if _, after, ok := strings.Cut(line, "retry_in="); ok {
				pauses = append(pauses, strings.Fields(after)[0])
			}
		}
		if n := len(slices.DeleteFunc(slices.Clone(pauses), func(s string) bool { return s != "1s" })); n != 3 {
			t.Errorf("the pauses are %v: want three that begin with 1s", pauses)
		}
		p.expectVerified(p.archive("ndjson"), 3)
	})
}

func TestShutdownWithoutLedger(t *testing.T) {
	withEnv(t, 4, func(p *env) {
		registers := &killableLedger{Rows: p.ledger}
		p.worker("one", func(a *archive.Archive) { a.Registers, a.ShutdownTimeout = registers, 8*time.Second })
		for _, id := range p.shards() {
			p.put(id, 3)
		}
		time.Sleep(time.Minute) // until the intents are pending
		registers.dead.Store(true)
		began := time.Now()
		p.stopWorkers()
		if took := time.Since(began); took > 8*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}
