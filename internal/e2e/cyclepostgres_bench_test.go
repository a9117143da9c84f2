package e2e

import (
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/pawlhq/pawl/internal/servertest"
	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/ledger/pgledger"
)

// BenchmarkCyclePostgres is BenchmarkCycle over PostgreSQL, which waits for its disk.
func BenchmarkCyclePostgres(b *testing.B) {
	server := servertest.Postgres(b, "fsync=on")
	open := func(schema string) *pgledger.Store {
		s, err := pgledger.Open(b.Context(), server.With(func(_ *url.URL, p url.Values) { p.Set("schema", schema) }))
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = s.Close() })
		return s
	}
	var cycle, bare time.Duration
	for n := 0; b.Loop(); n++ {
		events := makeEvents(b)
		store := open(fmt.Sprintf("cycle%d", n))
		tape := &tape{Store: store}
		start := time.Now()
		runCycle(b, tape, events)
		cycle += time.Since(start)
		if got := tape.rows(); got != 2*cycleEvents {
			b.Fatalf("%d rows were written for %d events: want two for each", got, cycleEvents)
		}
		bare += upsertAllPostgres(b, open(fmt.Sprintf("bare%d", n)), fmt.Sprintf("bare%d", n), tape.batches)
	}
	b.ReportMetric(float64(b.N*cycleEvents)/cycle.Seconds(), "cycles/s")
	b.ReportMetric(float64(b.N*cycleEvents)/bare.Seconds(), "bare/s")
	b.ReportMetric(bare.Seconds()/cycle.Seconds(), "ratio")
	b.ReportMetric(0, "ns/op")
}

const bareUpsertPostgres = `INSERT INTO %s.ledger (pipeline, bucket, key, version, nonce, due, body)
	SELECT * FROM unnest($1::bytea[], $2::bytea[], $3::bytea[], $4::bytea[], $5::uuid[], $6::timestamptz[], $7::text[])
	ON CONFLICT (pipeline, bucket, key, version) DO UPDATE SET nonce = excluded.nonce, due = excluded.due, body = excluded.body`

// upsertAllPostgres writes the recorded rows, in their order, 500 in a statement, and
// returns how long the writing took. They are encoded beforehand.
func upsertAllPostgres(b *testing.B, s *pgledger.Store, schema string, batches [][]ledger.Change) (took time.Duration) {
	b.Helper()
	var chunk []ledger.Change
	in := map[ledger.RowKey]bool{} // a statement may not write a row twice
	for _, batch := range batches {
		for _, c := range batch {
			if len(chunk) == 500 || in[c.Key] {
				took += upsertPostgres(b, s, schema, chunk)
				chunk, in = chunk[:0], map[ledger.RowKey]bool{}
			}
			chunk, in[c.Key] = append(chunk, c), true
		}
	}
	return took + upsertPostgres(b, s, schema, chunk)
}

func upsertPostgres(b *testing.B, s *pgledger.Store, schema string, chunk []ledger.Change) time.Duration {
	b.Helper()
	var pipelines, buckets, keys, versions [][]byte
	var nonces []pgtype.UUID
	var dues []pgtype.Timestamptz
	var bodies []string
	for _, c := range chunk {
		body, err := ledger.Encode(c.Row)
		if err != nil {
			b.Fatal(err)
		}
		pipelines, buckets = append(pipelines, []byte(c.Key.Pipeline)), append(buckets, []byte(c.Key.Bucket))
		keys, versions = append(keys, []byte(c.Key.Key)), append(versions, []byte(c.Key.VersionID))
		nonces = append(nonces, pgtype.UUID{Bytes: c.Row.Nonce, Valid: true})
		due := c.Row.Due()
		dues, bodies = append(dues, pgtype.Timestamptz{Time: due, Valid: !due.IsZero()}), append(bodies, string(body))
	}
	start := time.Now()
	sql := fmt.Sprintf(bareUpsertPostgres, schema)
	if _, err := s.Pool().Exec(b.Context(), sql, pipelines, buckets, keys, versions, nonces, dues, bodies); err != nil {
		b.Fatal(err)
	}
	return time.Since(start)
}
