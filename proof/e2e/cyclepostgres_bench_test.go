package e2e

import (
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/pawlhq/pawl/proof/servertest"
	"github.com/pawlhq/pawl/store"
	"github.com/pawlhq/pawl/store/postgres"
)

// BenchmarkCyclePostgres is BenchmarkCycle on PostgreSQL with durable writes.
func BenchmarkCyclePostgres(b *testing.B) {
	server := servertest.Postgres(b, "fsync=on")
	open := func(schema string) *postgres.Store {
		s, err := postgres.Open(b.Context(), server.URLWith(func(_ *url.URL, p url.Values) { p.Set("schema", schema) }))
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = s.Close() })
		return s
	}
	var cycle, bare time.Duration
	var bytes int64
	for n := 0; b.Loop(); n++ {
		events := makeEvents(b)
		store := open(fmt.Sprintf("cycle%d", n))
		tape := &recordingStore{Store: store}
		start := time.Now()
		runCycle(b, tape, events)
		cycle += time.Since(start)
		if got := len(tape.records); got != 2*cycleEvents {
			b.Fatalf("%d rows were written for %d events: want two for each", got, cycleEvents)
		}
		if _, err := store.Pool().Exec(b.Context(), fmt.Sprintf("VACUUM FULL cycle%d.record", n)); err != nil {
			b.Fatal(err)
		}
		size := fmt.Sprintf("SELECT pg_total_relation_size('cycle%d.record') / %d", n, cycleEvents)
		if err := store.Pool().QueryRow(b.Context(), size).Scan(&bytes); err != nil {
			b.Fatal(err)
		}
		bare += upsertAllPostgres(b, open(fmt.Sprintf("bare%d", n)), fmt.Sprintf("bare%d", n), tape.records)
	}
	b.ReportMetric(float64(b.N*cycleEvents)/cycle.Seconds(), "cycles/s")
	b.ReportMetric(float64(b.N*cycleEvents)/bare.Seconds(), "bare/s")
	b.ReportMetric(bare.Seconds()/cycle.Seconds(), "ratio")
	b.ReportMetric(float64(bytes), "bytes/row") // after a VACUUM FULL
	b.ReportMetric(0, "ns/op")
}

const bareUpsertPostgres = `INSERT INTO %s.record (space, name, nonce, due, body)
	SELECT * FROM unnest($1::bytea[], $2::bytea[], $3::uuid[], $4::timestamptz[], $5::text[])
	ON CONFLICT (space, name) DO UPDATE SET nonce = excluded.nonce, due = excluded.due, body = excluded.body`

func upsertAllPostgres(b *testing.B, s *postgres.Store, schema string, records []*store.Record) (took time.Duration) {
	b.Helper()
	var chunk []*store.Record
	in := map[store.Key]bool{} // a statement may not write a record twice
	for _, r := range records {
		if len(chunk) == 500 || in[r.Key] {
			took += upsertPostgres(b, s, schema, chunk)
			chunk, in = chunk[:0], map[store.Key]bool{}
		}
		chunk, in[r.Key] = append(chunk, r), true
	}
	return took + upsertPostgres(b, s, schema, chunk)
}

func upsertPostgres(b *testing.B, s *postgres.Store, schema string, chunk []*store.Record) time.Duration {
	b.Helper()
	var spaces, names [][]byte
	var nonces []pgtype.UUID
	var dues []pgtype.Timestamptz
	var bodies []string
	for _, r := range chunk {
		spaces, names = append(spaces, []byte(r.Space)), append(names, []byte(r.Name))
		nonces = append(nonces, pgtype.UUID{Bytes: r.Nonce, Valid: true})
		dues, bodies = append(dues, pgtype.Timestamptz{Time: r.Due, Valid: !r.Due.IsZero()}), append(bodies, r.Body)
	}
	start := time.Now()
	sql := fmt.Sprintf(bareUpsertPostgres, schema)
	if _, err := s.Pool().Exec(b.Context(), sql, spaces, names, nonces, dues, bodies); err != nil {
		b.Fatal(err)
	}
	return time.Since(start)
}
