package bench

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"net/url"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/proof/servertest"
	"github.com/pawlhq/pawl/source"
	"github.com/pawlhq/pawl/store/postgres"
)

var objects = flag.Int("objects", 20_000, "objects per round of BenchmarkPeers")

// BenchmarkPeers calls an empty handler once per object and records the completion durably. River
// and Pawl use the same PostgreSQL. Restate calls one virtual object each and has its own store.
func BenchmarkPeers(b *testing.B) {
	server := servertest.Postgres(b, "fsync=on")
	q := newRiver(b, server)
	round := 0
	pawls := &competitor{name: "pawl", work: func(b *testing.B) time.Duration {
		round++
		return cycle(b, server.URLWith(func(_ *url.URL, p url.Values) { p.Set("schema", fmt.Sprintf("round%d", round)) }))
	}}
	rivers := &competitor{name: "river", work: q.insertAndWork}
	restates := &competitor{name: "restate", work: newVirtualObjects(b).call}
	compare(b, *objects, rivers, pawls, restates)
	pawls.reportRatio(b, rivers)
	pawls.reportRatio(b, restates)
}

type job struct {
	Bucket string `json:"bucket"`
	Key    string `json:"key"`
}

func (job) Kind() string { return "nothing" }

type riverQueue struct {
	pool    *pgxpool.Pool
	workers *river.Workers
}

func newRiver(b *testing.B, server *servertest.PostgresServer) *riverQueue {
	b.Helper()
	pool, err := pgxpool.New(b.Context(), server.URLWith(func(_ *url.URL, p url.Values) { p.Set("pool_max_conns", "20") }))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(pool.Close)
	m, err := rivermigrate.New(riverpgxv5.New(pool), &rivermigrate.Config{Logger: slog.New(slog.DiscardHandler)})
	if err == nil {
		_, err = m.Migrate(b.Context(), rivermigrate.DirectionUp, nil)
	}
	if err != nil {
		b.Fatal(err)
	}
	q := &riverQueue{pool: pool, workers: river.NewWorkers()}
	river.AddWorker(q.workers, river.WorkFunc(func(context.Context, *river.Job[job]) error { return nil }))
	return q
}

// insertBatch and the client's settings are those of River's own benchmark.
const insertBatch = 5000

func (q *riverQueue) insertAndWork(b *testing.B) time.Duration {
	b.Helper()
	ctx := b.Context()
	if _, err := q.pool.Exec(ctx, "TRUNCATE river_job"); err != nil {
		b.Fatal(err)
	}
	client, err := river.NewClient(riverpgxv5.New(q.pool), &river.Config{
		Workers: q.workers, Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 2000}},
		FetchCooldown: 2 * time.Millisecond, FetchPollInterval: 20 * time.Millisecond, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		b.Fatal(err)
	}
	completed, unsubscribe := client.SubscribeConfig(&river.SubscribeConfig{ChanSize: *objects, Kinds: []river.EventKind{river.EventKindJobCompleted}})
	defer unsubscribe()
	if err := client.Start(ctx); err != nil {
		b.Fatal(err)
	}
	start := time.Now()
	for from := 0; from < *objects; from += insertBatch {
		var batch []river.InsertManyParams
		for i := from; i < min(from+insertBatch, *objects); i++ {
			batch = append(batch, river.InsertManyParams{Args: job{"photos", objectKey(i)}})
		}
		if _, err := client.InsertManyFast(ctx, batch); err != nil {
			b.Fatal(err)
		}
	}
	for range *objects {
		<-completed
	}
	took := time.Since(start)
	if err := client.Stop(ctx); err != nil {
		b.Fatal(err)
	}
	return took
}
func objectKey(i int) string { return fmt.Sprintf("in/%08x/%d.jpg", uint32(i)*2654435761, i) }

// cycle runs a Pawl on a new schema until every object is settled.
func cycle(b *testing.B, url string) time.Duration {
	b.Helper()
	records, err := postgres.Open(b.Context(), url)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = records.Close() }() // never fails
	events := make(feed, *objects)
	for i := range events {
		seq, err := event.ParseSequencer(fmt.Sprintf("0055AED6DC%08X", i+1))
		if err != nil {
			b.Fatal(err)
		}
		events[i] = event.Event{
			Object: event.Object{Bucket: "photos", Key: objectKey(i)}, Kind: event.Created, Sequencer: seq, Time: time.Now().UTC(),
			ETag: "d41d8cd98f00b204e9800998ecf8427e", Size: 1000, Name: "ObjectCreated:Put", Dialect: event.AWS,
		}
	}
	p, err := pawl.New(pawl.Config{
		Ledger: records, Sources: []pawl.Source{events}, Concurrency: 4000, MaxBacklogEvents: 4000, Logger: slog.New(slog.DiscardHandler),
		Pipelines: []pawl.Pipeline{{
			Name: "nothing", Match: pawl.Match{Bucket: "photos"}, Order: pawl.EventOrder,
			Handler: pawl.HandlerFunc(func(context.Context, *pawl.Task) error { return nil }),
		}},
	})
	if err != nil {
		b.Fatal(err)
	}
	start := time.Now()
	if err := p.Run(b.Context()); err != nil {
		b.Fatal(err)
	}
	took := time.Since(start)
	if n := p.Stats().Completed; n != int64(*objects) {
		b.Fatalf("%d of %d objects are settled", n, *objects)
	}
	return took
}

type feed []event.Event

func (f feed) Run(ctx context.Context, sink source.Sink) error {
	for i := 0; i < len(f); i += 10 {
		d := source.Delivery{Events: f[i:min(i+10, len(f))], Done: func(source.Outcome) {}}
		if err := sink.Deliver(ctx, d); err != nil {
			return err
		}
	}
	return nil
}

func (feed) Declares() (event.Dialect, bool) { return event.AWS, false }
