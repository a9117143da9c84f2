//go:build unix

package e2e

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/proof/servertest"
	"github.com/pawlhq/pawl/store"
	"github.com/pawlhq/pawl/store/postgres"
)

// The full run has 20,000 objects and 50 kills.
var (
	manyObjects = flag.Int("objects", 300, "objects of TestManyWorkers")
	manyStrikes = flag.Int("strikes", 5, "number of times that TestManyWorkers kills two workers")
)

func TestManyWorkers(t *testing.T) {
	servertest.Long(t)
	t.Parallel()
	seed := *firstSeed
	if seed == 0 {
		seed = rand.Uint64N(1 << 40)
	}
	t.Logf("repeat with: go test ./proof/e2e -run TestManyWorkers -objects %d -strikes %d -seed %d", *manyObjects, *manyStrikes, seed)
	const places = 8
	server := servertest.Postgres(t)
	records, err := postgres.Open(t.Context(), server.URL)
	if err != nil {
		t.Fatal(err)
	}
	store := ledger.NewRows(records)
	led := &testLedger{server.URL, store, newJournal(t, newPostgresLog(t, server.URL))}
	r := newRoundOn(t, servertest.MinIO, build(t), seed, newQueues(t, 2), places, led)
	r.relay.mu.Lock()
	r.relay.dropNothing = true
	r.relay.mu.Unlock()

	rng := rand.New(rand.NewPCG(seed, 3))
	ctx, cancel := context.WithCancel(t.Context())
	faultsDone := make(chan error, 1)
	var wg sync.WaitGroup
	wg.Go(func() { faultsDone <- r.fleet.killPairs(ctx, rand.New(rand.NewPCG(seed, 4)), *manyStrikes) })
	t.Cleanup(func() { cancel(); wg.Wait() })
	for n := range *manyObjects {
		key := fmt.Sprintf("dir %d/object %d", n%11, n)
		r.buckets.put(t, key, fmt.Sprintf("first %d, %d", n, rng.Uint64()))
		old := fmt.Sprintf("dir %d/object %d", (n/2)%11, n/2)
		switch rng.IntN(10) {
		case 0, 1:
			r.buckets.put(t, old, fmt.Sprintf("change %d, %d", n, rng.Uint64()))
		case 2:
			if _, there := r.buckets.want[old]; there {
				r.buckets.remove(t, old)
			}
		}
	}
	r.progress(t, fmt.Sprintf("%d changes made", len(r.buckets.changes)))
	if err := <-faultsDone; err != nil {
		t.Fatal(err)
	}
	r.progress(t, "all faults are injected")
	for limit := time.Now().Add(time.Minute); r.relay.Messages().OutOfOrder == 0 && time.Now().Before(limit); {
		r.buckets.put(t, "dir 0/object 0", fmt.Sprint(rng.Uint64()))
	}
	eventually(t, time.Minute, r.notificationsReceived)
	r.waitUntilSettledWithin(t, 2*time.Minute+time.Duration(*manyObjects)*20*time.Millisecond)
	r.progress(t, "settled")
	for _, row := range auditAll(t, r.buckets.store, r.ledger, inputs, pipelines) {
		t.Errorf("%s: an audit of settled rows finds a loss", row)
	}
	r.fleet.stop(t)
	if err := r.journal.end(); err != nil {
		t.Fatal(err)
	}
	r.check(t)
	c := &counts{elapsed: time.Since(r.began)}
	r.countFaults(c)
	taken, _ := r.relay.received()
	sent := r.relay.Messages()
	c.add("notifications", taken)
	c.add("  doubled", sent.Doubled)
	c.add("copies sent", sent.Sent)
	c.add("  after a newer one", sent.OutOfOrder)
	r.countAttempts(c)
	t.Logf("\n%s", c)
	for _, name := range []string{"  kills during an attempt", "  doubled", "  after a newer one"} {
		if c.count[name] == 0 {
			t.Errorf("%q never happened: the test shows too little", strings.TrimSpace(name))
		}
	}
}

func (f *fleet) killPairs(ctx context.Context, rng *rand.Rand, times int) error {
	for range times {
		pair := rng.Perm(len(f.slots))[:2]
		after := time.Duration(rng.Int64N(int64(2 * time.Second)))
		for i, n := range pair {
			s := plannedFault{after: after}
			if i > 0 {
				s.after = 0
			}
			if err := f.slots[n].inject(ctx, s); err != nil {
				return err
			}
		}
	}
	return nil
}

// A row is locked until its writer commits, so the records of a row are in order.
type postgresLog struct{ pool *pgxpool.Pool }

const postgresJournalSQL = `
	CREATE TABLE journal (n bigserial PRIMARY KEY, space bytea, name bytea, body text);
	CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		IF TG_OP = 'DELETE' THEN
			INSERT INTO public.journal (space, name) SELECT OLD.space, OLD.name WHERE substring(OLD.space FROM 1 FOR 4) = 'row/';
		ELSE
			INSERT INTO public.journal (space, name, body) SELECT NEW.space, NEW.name, NEW.body WHERE substring(NEW.space FROM 1 FOR 4) = 'row/';
		END IF;
		RETURN NULL;
	END $$;
	CREATE TRIGGER journal AFTER INSERT OR UPDATE OR DELETE ON pawl.record FOR EACH ROW EXECUTE FUNCTION note();`

func newPostgresLog(t *testing.T, url string) *postgresLog {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec(t.Context(), postgresJournalSQL); err != nil {
		t.Fatal(err)
	}
	return &postgresLog{pool}
}

func (b *postgresLog) drain() (records []journalRecord, err error) {
	found, err := b.pool.Query(context.Background(), "DELETE FROM journal RETURNING n, space, name, body")
	if err != nil {
		return nil, err
	}
	defer found.Close()
	type numbered struct {
		n int64
		journalRecord
	}
	var all []numbered
	for found.Next() {
		var n int64
		var space, name []byte
		var body *string
		if err := found.Scan(&n, &space, &name, &body); err != nil {
			return nil, err
		}
		key, err := ledger.ParseKey(store.Key{Space: string(space), Name: string(name)})
		if err != nil {
			return nil, err
		}
		r := journalRecord{key: key, deleted: body == nil}
		if body != nil {
			r.body = *body
		}
		all = append(all, numbered{n, r})
	}
	slices.SortFunc(all, func(a, b numbered) int { return int(a.n - b.n) })
	for _, r := range all {
		records = append(records, r.journalRecord)
	}
	return records, found.Err()
}

func (b *postgresLog) writable() bool { return true }

func (b *postgresLog) close() error { b.pool.Close(); return nil }
