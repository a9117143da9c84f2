//go:build unix

package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/proof/servertest"
	"github.com/pawlhq/pawl/store/sqlite"
)

type round struct {
	seed     uint64
	began    time.Time
	server   *servertest.Server
	network  *network
	buckets  *testBuckets
	relay    *relay
	queues   *queues // nil: the relay posts directly to the workers
	receiver *receiver
	fleet    *fleet
	workers  int
	ahead    int      // notifications that may wait while objects change
	upgrades []string // programs that replace the workers' program, one after the other
	ledger   ledger.Store
	journal  *journal

	auditFindings, lateWrites int
}

func newRound(t *testing.T, start func(testing.TB, servertest.Options) *servertest.Server, binary string, seed uint64, q *queues) *round {
	t.Helper()
	database := filepath.Join(t.TempDir(), "pawl.db")
	records, err := sqlite.Open(t.Context(), database)
	if err != nil {
		t.Fatal(err)
	}
	led := ledger.NewRows(records)
	return newRoundOn(t, start, binary, seed, q, workers, &testLedger{"sqlite:" + database, led, newSQLiteJournal(t, database)})
}

type testLedger struct {
	url     string
	store   ledger.Store
	journal *journal
}

func newRoundOn(t *testing.T, start func(testing.TB, servertest.Options) *servertest.Server, binary string, seed uint64, q *queues, places int, led *testLedger) *round {
	t.Helper()
	const auth = "Basic cGF3bDpzM2NyZXQ=" // the only scheme that both servers can send
	dir := t.TempDir()
	r := &round{seed: seed, began: time.Now(), queues: q, workers: places, fleet: &fleet{binary: binary, dir: dir, config: filepath.Join(dir, "pawl.yaml")}}
	timeout := time.Second
	if r.ahead = 100; q == nil && strings.HasPrefix(led.url, "dynamodb:") {
		// The local server is slow on a busy machine. If a notification is sent again while the table works
		// on the first copy, all workers write the same rows, and refuse each other's writes. The rounds on
		// SQLite send the notifications of a frozen worker to another one.
		r.ahead, timeout = 16, 10*time.Second
	}
	if q != nil {
		r.relay = newRelay(t, seed, q.addresses, q.send)
	} else {
		r.relay = newRelay(t, seed, r.fleet.addresses, poster(t, auth, timeout))
	}
	r.receiver = newReceiver(t, seed)
	r.server = start(t, servertest.Options{Webhook: r.relay.url, Authorization: auth})
	r.network = newNetwork(t, seed, r.server.Endpoint)
	r.buckets = newTestBuckets(t, r.server)
	r.server.Notify(t, inputs)
	r.server.Notify(t, outputs)

	t.Cleanup(func() { _ = led.store.Close() })
	r.ledger, r.journal = led.store, led.journal

	text := fmt.Sprintf(killConfig, led.url, r.network.url, r.server.Region, auth, q.sources(), r.receiver.url, ttl, skew, horizon)
	if err := os.WriteFile(r.fleet.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	r.fleet.env = []string{"AWS_ACCESS_KEY_ID=" + r.server.AccessKey, "AWS_SECRET_ACCESS_KEY=" + r.server.SecretKey}
	r.fleet.isZombie = r.holdsLease
	r.fleet.start(t, places)
	return r
}

// Others can take such a lease over.
func (r *round) holdsLease(pid int) bool {
	for row, err := range r.ledger.Scan(context.Background(), ledger.Range{}) {
		if err != nil {
			return false
		}
		if ownedBy(row.Lease.Owner, pid) {
			return r.journal.writable()
		}
	}
	return false
}

// Owners have the form host/pid/nonce.
func ownedBy(owner string, pid int) bool { return strings.Contains(owner, fmt.Sprintf("/%d/", pid)) }

func (r *round) run(t *testing.T) {
	t.Helper()
	rng := rand.New(rand.NewPCG(r.seed, 0))
	faults := planFaults(rng, *kills, *stops, r.workers)
	planUpgrades(faults, r.upgrades)
	for n := range 20 { // enough that some are not dropped
		r.buckets.changeRandom(t, rng, n)
	}
	eventually(t, time.Minute, r.hasRows) // a store may delay its first notification
	r.progress(t, "at work")
	faultsDone := make(chan error, 1)
	r.fleet.wg.Go(func() { faultsDone <- r.fleet.injectAll(t.Context(), faults) })
	r.changeObjects(t, rng, faultsDone)
	r.progress(t, "all faults are injected")
	eventually(t, time.Minute, r.notificationsReceived)
	r.waitUntilSettled(t)
	r.progress(t, "settled")
	for _, row := range auditAll(t, r.buckets.store, r.ledger, inputs, pipelines) {
		r.auditFindings++
		if !r.relay.lastWasDropped(row.Object()) && !r.server.Garbles {
			t.Errorf("%s: the notification of its last change was acknowledged, but is not in the ledger", row)
		}
	}
	r.waitUntilSettled(t)
	r.progress(t, "audited, and settled again")
	for _, row := range auditAll(t, r.buckets.store, r.ledger, inputs, pipelines) {
		t.Errorf("%s: an audit of settled rows finds a loss", row)
	}
	r.fleet.stop(t)
	if err := r.journal.end(); err != nil {
		t.Fatal(err)
	}
}

func (r *round) progress(t *testing.T, what string) {
	t.Helper()
	t.Logf("%5.1f s: %s", time.Since(r.began).Seconds(), what)
}

// A store that garbles notifications is exempt.
func (r *round) notificationsReceived(context.Context) ([]string, error) {
	if received, _ := r.relay.received(); received < len(r.buckets.changes) && !r.server.Garbles {
		return []string{fmt.Sprintf("the store has sent notifications of %d changes out of %d", received, len(r.buckets.changes))}, nil
	}
	return nil, nil
}

func (r *round) hasRows(ctx context.Context) ([]string, error) {
	for _, err := range r.ledger.Scan(ctx, ledger.Range{}) {
		return nil, err
	}
	return []string{"the ledger is empty"}, nil
}

// changeObjects keeps the workers busy, but leaves them time to take over leases. On a slow machine it
// continues for at most a minute, until every kind of fault has happened and an audit has losses to find.
func (r *round) changeObjects(t *testing.T, rng *rand.Rand, faultsDone <-chan error) {
	t.Helper()
	const open = 24 // rows
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	var limit <-chan time.Time
	for n := 20; ; {
		select {
		case err := <-faultsDone:
			if err != nil {
				t.Fatal(err)
			}
			faultsDone, limit = nil, time.After(time.Minute)
		case <-limit:
			return
		case <-tick.C:
			if m := r.relay.Messages(); faultsDone == nil && (r.queues != nil || m.OutOfOrder > 0) && m.Dropped >= 5 && m.Doubled > 0 && m.Delayed > 0 &&
				r.relay.lastDropped() >= 3 && (testing.Short() || r.network.rejected() > 0) {
				return
			}
			if r.relay.pending()+r.queues.visible() < r.ahead && r.journal.unsettled.Load() < open {
				r.buckets.changeRandom(t, rng, n)
				n++
			}
		}
	}
}

func (w *testBuckets) changeRandom(t *testing.T, rng *rand.Rand, n int) {
	t.Helper()
	i := rng.IntN(objects)
	key := fmt.Sprintf("dir %d/object %d", i%11, i)
	if _, ok := w.want[key]; ok && rng.IntN(4) == 0 {
		w.remove(t, key)
		return
	}
	w.put(t, key, fmt.Sprintf("change %d, of %d, %d", n, i, rng.Uint64()))
}

func (r *round) waitUntilSettled(t *testing.T) {
	t.Helper()
	r.waitUntilSettledWithin(t, 5*time.Minute) // on two busy cores and a throttled table
}

func (r *round) waitUntilSettledWithin(t *testing.T, limit time.Duration) {
	t.Helper()
	eventually(t, limit, func(ctx context.Context) ([]string, error) {
		if n := r.relay.pending(); n > 0 {
			return []string{fmt.Sprintf("%d notifications are not acknowledged", n)}, nil
		}
		if n, err := r.queues.total(ctx); n > 0 || err != nil {
			return []string{fmt.Sprintf("%d messages are in the queues", n)}, err
		}
		bad, _, err := unsettled(ctx, r.ledger)
		for row, serr := range r.ledger.Scan(ctx, ledger.Range{}) {
			if err == nil && serr == nil && !row.VerifyAt.IsZero() {
				bad = append(bad, fmt.Sprintf("%s waits for its verification", row.RowKey))
			}
		}
		return bad, err
	})
}
