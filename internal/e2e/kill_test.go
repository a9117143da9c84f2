//go:build unix

package e2e

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/internal/servertest"
	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/ledger/sqliteledger"
)

// What TestKills is to do. Its plan is made from the seed and these.
var (
	rounds    = flag.Int("rounds", 1, "rounds on each server")
	kills     = flag.Int("kills", 20, "SIGKILLs in a round")
	stops     = flag.Int("stops", 5, "SIGSTOPs in a round")
	firstSeed = flag.Uint64("seed", 0, "seed of the first round; 0: a fresh one")
)

const (
	workers = 3
	objects = 200
)

// The pipelines. One has an output, the other tells a service.
const (
	pipelineUpper = "upper"
	pipelineTell  = "tell"
)

var pipelines = []string{pipelineUpper, pipelineTell}

// The lease is short, so that a stopped worker sleeps through it. The horizon is
// longer than the longest stop and the slowest write together, for that is how
// late a write may land.
const killConfig = `
ledger: sqlite:%s
objects: {endpoint: %q, region: %s, path_style: true}
sources:
  - webhook: {listen: "${PAWL_LISTEN}", path: /events, token: %q}
pipelines:
  - name: upper
    match: {bucket: inputs}
    exec: {command: [sh, -c, 'sleep 0.$((PAWL_FENCE %% 2))$((PAWL_FENCE %% 7)); exec tr a-z A-Z'], to: s3://outputs/up/}
  - name: tell
    match: {bucket: inputs}
    http: {url: %q, timeout: 5s}
lease: {ttl: 1s, skew: 300ms, horizon: 5s}
retry: {attempts: 100, base: 50ms, max: 1s}
concurrency: 16
sweep: 200ms
`

// TestKills runs several worker processes over one ledger and one object store
// while objects change, kills them at random (SIGKILL) and stops them for longer
// than their leases last (SIGSTOP, later SIGCONT), with a relay before them that
// drops, doubles, delays and reorders what the store tells. The ledger is
// watched at every write. At rest nothing that was acknowledged is forgotten,
// what the relay dropped is found by comparing the bucket with the ledger, every
// output is that of its input, and no effect is committed twice.
//
// The seed repeats the changes, the strikes and the fate of notifications. The
// timing it does not.
func TestKills(t *testing.T) {
	start := map[string]func(testing.TB, servertest.Options) *servertest.Server{
		"minio": servertest.MinIO, "versitygw": servertest.VersityGW,
	}
	first := *firstSeed
	if first == 0 {
		first = rand.Uint64N(1 << 40)
	}
	binary := build(t, t.TempDir())
	total := &tally{}
	for name, start := range start {
		t.Run(name, func(t *testing.T) {
			for i := range *rounds {
				seed := first + uint64(i)
				t.Run(fmt.Sprint(seed), func(t *testing.T) {
					t.Logf("repeat with: go test ./internal/e2e -run TestKills/%s -kills %d -stops %d -seed %d", name, *kills, *stops, seed)
					r := newRound(t, start, binary, seed)
					r.play(t)
					r.check(t)
					c := r.tally(t)
					total.merge(c)
					t.Logf("\n%s", c)
				})
			}
		})
	}
	if *rounds > 1 {
		t.Logf("in all:\n%s", total)
	}
}

// round is a store, a ledger and a fleet of their own.
type round struct {
	seed     uint64
	began    time.Time
	server   *servertest.Server
	network  *network
	world    *world
	relay    *relay
	receiver *receiver
	fleet    *fleet
	ledger   ledger.Store
	journal  *journal

	healed, lateWrites int
}

func newRound(t *testing.T, start func(testing.TB, servertest.Options) *servertest.Server, binary string, seed uint64) *round {
	t.Helper()
	const auth = "Basic cGF3bDpzM2NyZXQ=" // the one form that both servers can send
	dir := t.TempDir()
	r := &round{seed: seed, began: time.Now(), fleet: &fleet{binary: binary, dir: dir, config: filepath.Join(dir, "pawl.yaml")}}
	r.relay = newRelay(t, seed, auth, r.fleet.addresses)
	r.receiver = newReceiver(t, seed)
	r.server = start(t, servertest.Options{Webhook: r.relay.url, Authorization: auth})
	r.network = newNetwork(t, seed, r.server.Endpoint)
	r.world = newWorld(t, r.server)
	r.server.Notify(t, inputs)
	r.server.Notify(t, outputs)

	database := filepath.Join(dir, "pawl.db")
	led, err := sqliteledger.Open(t.Context(), database)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = led.Close() })
	r.ledger, r.journal = led, follow(t, database)

	text := fmt.Sprintf(killConfig, database, r.network.url, r.server.Region, auth, r.receiver.url)
	if err := os.WriteFile(r.fleet.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	r.fleet.env = []string{"AWS_ACCESS_KEY_ID=" + r.server.AccessKey, "AWS_SECRET_ACCESS_KEY=" + r.server.SecretKey}
	r.fleet.caught = r.caught
	r.fleet.start(t, workers)
	return r
}

// caught reports that a process has a lease, and does not keep the others from
// writing to the ledger, so that they can take it over.
func (r *round) caught(pid int) bool {
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

// ownedBy reports that an owner, host/pid/nonce, is a process.
func ownedBy(owner string, pid int) bool { return strings.Contains(owner, fmt.Sprintf("/%d/", pid)) }

// play changes objects for as long as processes are struck, and then lets
// everything come to rest.
func (r *round) play(t *testing.T) {
	t.Helper()
	rng := rand.New(rand.NewPCG(r.seed, 0))
	strikes := plan(rng, *kills, *stops, workers)
	r.world.change(t, rng, 0)
	eventually(t, time.Minute, r.begun) // a store may take its time over the first notification
	r.progress(t, "at work")
	struck := make(chan error, 1)
	go func() { struck <- r.fleet.suffer(t.Context(), strikes) }()
	r.change(t, rng, struck)
	r.progress(t, "every strike is dealt")
	r.rest(t)
	r.progress(t, "at rest")
	for _, row := range auditAll(t, r.world.store, r.ledger, inputs, pipelines) {
		r.healed++
		if !r.relay.missing(row.Object()) && !r.server.Garbles {
			t.Errorf("%s: the notification of its last change was acknowledged, and is forgotten", row)
		}
	}
	r.rest(t)
	r.progress(t, "audited, and at rest again")
	for _, row := range auditAll(t, r.world.store, r.ledger, inputs, pipelines) {
		t.Errorf("%s: an audit finds a loss at rest", row)
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

func (r *round) begun(ctx context.Context) ([]string, error) {
	for _, err := range r.ledger.Scan(ctx, ledger.Range{}) {
		return nil, err
	}
	return []string{"nothing has come to the ledger"}, nil
}

// change puts, overwrites and removes objects until struck. It keeps the workers
// busy, but leaves them time for what others have left behind.
func (r *round) change(t *testing.T, rng *rand.Rand, struck <-chan error) {
	t.Helper()
	const ahead, open = 100, 24 // notifications, rows
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for n := 1; ; {
		select {
		case err := <-struck:
			if err != nil {
				t.Fatal(err)
			}
			return
		case <-tick.C:
			if r.relay.left() < ahead && r.journal.busy.Load() < open {
				r.world.change(t, rng, n)
				n++
			}
		}
	}
}

// change puts, overwrites or removes some object. No two contents are the same.
func (w *world) change(t *testing.T, rng *rand.Rand, n int) {
	t.Helper()
	i := rng.IntN(objects)
	key := fmt.Sprintf("dir %d/object %d", i%11, i)
	if _, ok := w.want[key]; ok && rng.IntN(4) == 0 {
		w.remove(t, key)
		return
	}
	w.put(t, key, fmt.Sprintf("change %d, of %d, %d", n, i, rng.Uint64()))
}

// rest waits until every notification is acknowledged, and every row settled and
// verified.
func (r *round) rest(t *testing.T) {
	t.Helper()
	eventually(t, 2*time.Minute, func(ctx context.Context) ([]string, error) {
		if n := r.relay.left(); n > 0 {
			return []string{fmt.Sprintf("%d notifications are not acknowledged", n)}, nil
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

// check looks at everything when nothing runs any more.
func (r *round) check(t *testing.T) {
	t.Helper()
	bad, _, err := unsettled(t.Context(), r.ledger)
	if err != nil {
		t.Fatal(err)
	}
	wrong, err := r.world.wrong(t.Context(), r.ledger, "up/", strings.ToUpper)
	if err != nil {
		t.Fatal(err)
	}
	bad = slices.Concat(bad, wrong, r.journal.wrong(), r.receiver.bad, r.told(), r.forgotten(t))
	for _, what := range bad[:min(len(bad), 10)] {
		t.Error(what)
	}
	if len(bad) > 10 {
		t.Errorf("and %d more", len(bad)-10)
	}
	// The store may take its time over these notifications, too.
	eventually(t, time.Minute, func(context.Context) ([]string, error) { return r.written() })
	r.progress(t, "checked")
}

// told checks the pipeline without an output: what is promised of its effects,
// and that a careful receiver ends with what is in the bucket, having acted once
// upon each content.
func (r *round) told() (bad []string) {
	effects := r.receiver.byKey()
	for key, puts := range r.world.puts {
		l := r.life(pipelineTell, key)
		wrong := judge(l, effects[key], puts)
		acts, _, _ := careful(effects[key])
		acted := map[string]bool{}
		for _, e := range acts {
			if e.Kind == event.Created && acted[e.ETag] {
				wrong = append(wrong, e.String()+", and a careful receiver acts upon it twice")
			}
			acted[e.ETag] = true
		}
		_, exists := r.world.want[key]
		switch n := len(acts); {
		case exists && (n == 0 || acts[n-1].ETag != puts[len(puts)-1]):
			wrong = append(wrong, fmt.Sprintf("%q: of its last content the receiver was not told", key))
		case !exists && n > 0 && acts[n-1].Kind != event.Removed:
			wrong = append(wrong, fmt.Sprintf("%q: of its removal the receiver was not told", key))
		}
		if len(wrong) > 0 {
			bad = append(bad, strings.Join(wrong, "\n")+"\n"+l.String()+fmt.Sprintf("\neffects: %v", effects[key]))
		}
	}
	return bad
}

// written checks the pipeline with an output, where the store tells who wrote.
func (r *round) written() (bad []string, err error) {
	if r.server.Name != "minio" {
		return nil, nil // versitygw tells no metadata
	}
	all, err := publications(r.relay.aboutOutputs(), "up/")
	if err != nil {
		return nil, err
	}
	r.lateWrites = 0
	for key, puts := range r.world.puts {
		l := r.life(pipelineUpper, key)
		wrong, late := fenced(l, all[key], puts)
		r.lateWrites += late
		if len(wrong) > 0 {
			bad = append(bad, strings.Join(wrong, "\n")+"\n"+l.String()+fmt.Sprintf("\nwrites: %v", all[key]))
		}
	}
	return bad, nil
}

// life returns that of a row, or one in which nothing ever was.
func (r *round) life(pipeline, key string) *life {
	k := ledger.RowKey{Pipeline: pipeline, Bucket: inputs, Key: key}
	if l := r.journal.lives[k]; l != nil {
		return l
	}
	return &life{key: k}
}

// forgotten lists the acknowledged events that the ledger does not know of.
func (r *round) forgotten(t *testing.T) (bad []string) {
	t.Helper()
	rows := map[ledger.RowKey]ledger.Row{}
	for row, err := range r.ledger.Scan(t.Context(), ledger.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		rows[row.RowKey] = row
	}
	for _, e := range r.relay.acked {
		if e.Object.Bucket != inputs {
			continue // the store has garbled it
		}
		for _, p := range pipelines {
			row, ok := rows[ledger.RowKey{Pipeline: p, Bucket: e.Object.Bucket, Key: e.Object.Key}]
			if !ok || row.EventTime.Before(e.Time) {
				bad = append(bad, fmt.Sprintf("%s of %s was acknowledged, and %s has not heard of it", e.Name, e.Object, p))
			}
		}
	}
	return bad
}
