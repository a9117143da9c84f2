//go:build unix

package e2e

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/proof/servertest"
	"github.com/pawlhq/pawl/store/postgres"
)

var (
	csvFiles  = flag.Int("files", 200, "CSV files of TestLoads")
	loadKills = flag.Int("loadkills", 20, "SIGKILLs during TestLoads")
	crashes   = flag.Int("crashes", 4, "PostgreSQL crashes during TestLoads")
)

const loadConfig = `
ledger: %q
objects: {endpoint: %q, region: %s, path_style: true}
sources:
  - webhook: {listen: "${PAWL_LISTEN}", path: /events, token: %q}
pipelines:
  - name: load
    match: {bucket: inputs}
    load: {table: exports, format: csv}
lease: {ttl: 2s, skew: 300ms, late_write_window: 3s}
retry: {attempts: 100, base: 50ms, max: 1s}
concurrency: 8
sweep_interval: 200ms
`

// At rest, the table contains exactly the rows of the existing files. A plain table of processed keys has
// wrong rows.
func TestLoads(t *testing.T) {
	servertest.Long(t)
	t.Parallel()
	seed := *firstSeed
	if seed == 0 {
		seed = rand.Uint64N(1 << 40)
	}
	t.Logf("repeat with: go test ./proof/e2e -run TestLoads -files %d -loadkills %d -crashes %d -seed %d", *csvFiles, *loadKills, *crashes, seed)
	l := newLoadTest(t, seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for n := range *csvFiles {
		l.change(t, rng, n, n)
	}
	faults := planFaults(rng, *loadKills, 0, workers)
	tended, end := context.WithCancel(t.Context())
	defer end()
	l.fleet.wg.Go(func() {
		if err := l.fleet.injectAll(t.Context(), faults); err != nil {
			t.Error(err)
		}
		// A worker that starts while PostgreSQL is down exits with 2, as documented.
		if err := l.fleet.restartExited(tended); err != nil {
			t.Error(err)
		}
	})
	changes := 2 * *csvFiles
	for n := range changes {
		l.change(t, rng, rng.IntN(*csvFiles), *csvFiles+n)
		if (n+1)**crashes/changes > n**crashes/changes {
			l.postgres.Stop()
			l.postgres.Start()
		}
	}
	l.waitUntilSettled(t)
	auditAll(t, l.buckets.store, l.ledger, inputs, []string{"load"})
	l.waitUntilSettled(t)
	end()
	l.fleet.wg.Wait()
	l.stop()
	l.naiveDone.Wait()
	want := l.expectedRows()
	if wrong := differences(want, l.table(t, "exports")); len(wrong) > 0 {
		t.Errorf("%d rows are wrong, of %d:\n%s", len(wrong), len(want), strings.Join(wrong[:min(10, len(wrong))], "\n"))
	}
	if wrong := differences(want, l.table(t, "naive")); len(wrong) == 0 {
		t.Error("the plain table of processed keys is also correct: the test shows too little")
	} else {
		t.Logf("%d rows; the plain table of processed keys has %d wrong rows", len(want), len(wrong))
	}
	t.Logf("PostgreSQL crashed %d times, and the answers to %d commits and %d other requests were lost", *crashes, l.commits.Load(), l.lost.Load())
	if l.commits.Load() == 0 {
		t.Error("no answer to a commit was lost: the test shows too little")
	}
}

type loadTest struct {
	postgres  *servertest.PostgresServer
	pool      *pgxpool.Pool
	records   *postgres.Store
	ledger    *ledger.Rows
	relay     *relay
	buckets   *testBuckets
	fleet     *fleet
	commits   atomic.Int64
	lost      atomic.Int64
	naiveDone sync.WaitGroup
	stop      context.CancelFunc
}

func newLoadTest(t *testing.T, seed uint64) *loadTest {
	t.Helper()
	const auth = "Basic cGF3bDpzM2NyZXQ="
	dir := t.TempDir()
	l := &loadTest{fleet: &fleet{binary: build(t), dir: dir, config: filepath.Join(dir, "pawl.yaml"), ledgerMayBeDown: true}}
	l.postgres = servertest.Postgres(t)
	for _, table := range []string{"exports", "naive"} {
		l.postgres.Exec(fmt.Sprintf("CREATE TABLE %s (name text, n int, _source text); CREATE INDEX ON %[1]s (_source)", table))
	}
	l.postgres.Exec("CREATE TABLE processed (key text PRIMARY KEY, state text)")
	var err error
	if l.records, err = postgres.Open(t.Context(), l.postgres.URL); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.records.Close() })
	l.ledger, l.pool = ledger.NewRows(l.records), l.records.Pool()
	u, err := url.Parse(l.postgres.URL)
	if err != nil {
		t.Fatal(err)
	}
	flaky := servertest.NewLossyProxy(t, u.Host, func(answer []byte) bool {
		odds, lost := 60, &l.lost
		if bytes.Contains(answer, []byte("COMMIT\x00")) {
			odds, lost = 5, &l.commits
		}
		if rand.IntN(odds) > 0 {
			return false
		}
		lost.Add(1)
		return true
	})
	l.relay = newRelay(t, seed, l.fleet.addresses, poster(t, auth, time.Second))
	server := servertest.MinIO(t, servertest.Options{Webhook: l.relay.url, Authorization: auth})
	l.buckets = newTestBuckets(t, server)
	server.Notify(t, inputs)
	text := fmt.Sprintf(loadConfig, l.postgres.URLWith(func(u *url.URL, _ url.Values) { u.Host = flaky.Addr }), server.Endpoint, server.Region, auth)
	if err := os.WriteFile(l.fleet.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	l.fleet.env = []string{"AWS_ACCESS_KEY_ID=" + server.AccessKey, "AWS_SECRET_ACCESS_KEY=" + server.SecretKey}
	l.fleet.start(t, workers)
	ctx, stop := context.WithCancel(t.Context())
	l.stop = stop
	t.Cleanup(func() {
		stop()
		l.naiveDone.Wait()
	})
	l.naiveDone.Go(func() { l.runNaive(ctx, rand.New(rand.NewPCG(seed, 2))) })
	return l
}

func (l *loadTest) change(t *testing.T, rng *rand.Rand, i, n int) {
	t.Helper()
	key := fmt.Sprintf("day %d/file %d.csv", i%7, i)
	if _, ok := l.buckets.want[key]; ok && rng.IntN(4) == 0 {
		l.buckets.remove(t, key)
		return
	}
	text := "n,name\n"
	for row := range 1 + rng.IntN(20) {
		text += fmt.Sprintf("%d,\"change %d, of %d\"\n", row, n, i)
	}
	l.buckets.put(t, key, text)
}

func (l *loadTest) expectedRows() (all []string) {
	for key, text := range l.buckets.want {
		for _, line := range strings.Split(strings.TrimSpace(text), "\n")[1:] {
			n, name, _ := strings.Cut(line, ",")
			all = append(all, fmt.Sprintf("%s|%s|s3://inputs/%s", strings.Trim(name, `"`), n, key))
		}
	}
	return all
}

func (l *loadTest) table(t *testing.T, name string) []string {
	t.Helper()
	rows, err := l.pool.Query(t.Context(), "SELECT concat_ws('|', name, n, _source) FROM "+name)
	if err != nil {
		t.Fatal(err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func differences(want, got []string) (wrong []string) {
	counts := map[string]int{}
	for _, s := range want {
		counts[s]++
	}
	for _, s := range got {
		counts[s]--
	}
	for s, n := range counts {
		if n != 0 {
			wrong = append(wrong, fmt.Sprintf("%+d × %s", -n, s))
		}
	}
	slices.Sort(wrong)
	return wrong
}

func (l *loadTest) waitUntilSettled(t *testing.T) {
	t.Helper()
	eventually(t, 2*time.Minute, func(ctx context.Context) ([]string, error) {
		if received, _ := l.relay.received(); received < len(l.buckets.changes) {
			return []string{fmt.Sprintf("the store has sent notifications of %d changes out of %d", received, len(l.buckets.changes))}, nil
		}
		if n := l.relay.pending(); n > 0 {
			return []string{fmt.Sprintf("%d notifications are not acknowledged", n)}, nil
		}
		bad, _, err := unsettled(ctx, l.ledger)
		for row, serr := range l.ledger.Scan(ctx, ledger.Range{}) {
			if err == nil && serr == nil && !row.VerifyAt.IsZero() {
				bad = append(bad, fmt.Sprintf("%s waits for its verification", row.RowKey))
			}
		}
		return bad, err
	})
}

// runNaive processes notifications as is often advised: it checks a table of processed keys first, and
// updates it last. Sometimes its process ends in between.
func (l *loadTest) runNaive(ctx context.Context, rng *rand.Rand) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for done := 0; ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		l.relay.mu.Lock()
		fresh := slices.Clone(l.relay.acked[done:])
		l.relay.mu.Unlock()
		done += len(fresh)
		for _, e := range fresh {
			_ = l.naiveLoad(ctx, &e, rng.IntN(20) == 0)
		}
	}
}

func (l *loadTest) naiveLoad(ctx context.Context, e *event.Event, dies bool) error {
	tag, err := l.pool.Exec(ctx, "INSERT INTO processed VALUES ($1, 'PROCESSING') ON CONFLICT DO NOTHING", e.Object.Key)
	if err != nil || tag.RowsAffected() == 0 || e.Kind != event.Created {
		return err
	}
	_, body, err := l.buckets.store.Get(ctx, e.Object)
	if err != nil {
		return err
	}
	text, err := io.ReadAll(body)
	if err = errors.Join(err, body.Close()); err != nil {
		return err
	}
	for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n")[1:] {
		n, name, _ := strings.Cut(line, ",")
		if _, err := l.pool.Exec(ctx, "INSERT INTO naive VALUES ($1, $2::text::int, $3)", strings.Trim(name, `"`), n, "s3://inputs/"+e.Object.Key); err != nil {
			return err
		}
	}
	if dies {
		return nil
	}
	_, err = l.pool.Exec(ctx, "UPDATE processed SET state = 'PROCESSED' WHERE key = $1", e.Object.Key)
	return err
}
