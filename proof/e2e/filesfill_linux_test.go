package e2e

import (
	"context"
	crand "crypto/rand"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	zombiezen "zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/pawlhq/pawl/files"
	"github.com/pawlhq/pawl/proof/servertest"
	"github.com/pawlhq/pawl/store"
	"github.com/pawlhq/pawl/store/postgres"
	"github.com/pawlhq/pawl/store/sqlite"
)

type filledIndex struct {
	index  *files.Index
	list   func(context.Context, *rand.Rand) error // SELECTs a page
	insert func(context.Context) error
}

// Half of the rows belong to largeEntity. The other entities have albumFiles each.
const largeEntity = "large"

func album(i int) string { return fmt.Sprintf("album-%d", i) }

func albums() int { return *fileRows / albumFiles }

// IDs are in order of time, like UUIDs of version 7.
func rowID(n int) string {
	return fmt.Sprintf("019a%04x-%04x-7000-8000-%012x", n/65536, n%65536, n*2654435761%4294967296)
}

func rowEntity(n int) string {
	if n%2 == 0 {
		return largeEntity
	}
	return album(n / 2 % albums())
}

var rowPromise = files.Promise{Size: 48_123, ContentType: "image/jpeg", SHA256: [32]byte{1, 2, 3, 255}}

// The service writes one row with these names; the others are copies of it.
const (
	firstEntity = "first-entity"
	firstKey    = "first-idempotency-key"
)

func writeFirst(b *testing.B, index *files.Index) string {
	b.Helper()
	s := newFilesService(b, index)
	f, _, err := s.Upload(b.Context(), firstEntity, firstKey, rowPromise)
	if err == nil {
		f, err = s.Reconcile(b.Context(), f.ID, true)
	}
	if err != nil || f.State != files.Indexed {
		b.Fatal(f.State, err)
	}
	return f.ID
}

// Each file has 3 records.
const fillBatch = 150

func fillRecords(b *testing.B, s store.Store, id string) {
	b.Helper()
	began := time.Now()
	keys := []store.Key{
		{Space: "file", Name: id}, {Space: "entity/" + firstEntity, Name: id},
		{Space: "idempotency", Name: store.Join(firstEntity, firstKey)},
	}
	first, err := s.Load(b.Context(), keys)
	if err != nil || len(first) != len(keys) {
		b.Fatal(len(first), err)
	}
	var changes []store.Change
	for n := range 2 * *fileRows {
		names := strings.NewReplacer(id, rowID(n), firstEntity, rowEntity(n), firstKey, rowID(n))
		for _, r := range first {
			r.Space, r.Name, r.Body = names.Replace(r.Space), names.Replace(r.Name), names.Replace(r.Body)
			r.Nonce[0]++
			changes = append(changes, store.Change{Key: r.Key, Next: &r})
		}
		if len(changes) < len(keys)*fillBatch && n < 2**fileRows-1 {
			continue
		}
		out, err := s.Swap(b.Context(), changes)
		for i := range out {
			if !out[i].Applied {
				b.Fatalf("%q: %+v", changes[i].Key, out[i])
			}
		}
		if err != nil {
			b.Fatal(err)
		}
		changes = changes[:0]
	}
	b.Logf("filled in %s", time.Since(began))
}

func openSQLite(b *testing.B, path string) *files.Index {
	b.Helper()
	_, missing := os.Stat(path)
	records, err := sqlite.Open(b.Context(), path)
	if err != nil {
		b.Fatal(err)
	}
	index := files.NewIndex(records)
	b.Cleanup(func() { _ = index.Close() })
	if missing != nil {
		fillRecords(b, records, writeFirst(b, index))
	}
	return index
}

func newFilledSQLite(b *testing.B, path string) filledIndex {
	b.Helper()
	index := openSQLite(b, path)
	bare, err := zombiezen.OpenConn(path, zombiezen.OpenReadWrite)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = bare.Close() })
	for _, sql := range []string{"PRAGMA synchronous = FULL", "CREATE TABLE IF NOT EXISTS bare (id TEXT PRIMARY KEY, file TEXT NOT NULL) STRICT"} {
		if err := sqlitex.ExecuteTransient(bare, sql, nil); err != nil {
			b.Fatal(err)
		}
	}
	text := ""
	err = sqlitex.Execute(bare, "SELECT body FROM record LIMIT 1", &sqlitex.ExecOptions{ResultFunc: func(s *zombiezen.Stmt) error { text = s.ColumnText(0); return nil }})
	if err != nil {
		b.Fatal(err)
	}
	return filledIndex{
		index: index,
		list: func(_ context.Context, rng *rand.Rand) error {
			n, got := rng.IntN(2**fileRows), 0
			return sqlitex.Execute(bare, `SELECT body FROM record WHERE space = ?1 AND name > ?2 ORDER BY name LIMIT 101`, &sqlitex.ExecOptions{
				Args:       []any{[]byte("entity/" + rowEntity(n)), []byte(rowID(n))},
				ResultFunc: func(s *zombiezen.Stmt) error { got += len(s.ColumnText(0)); return nil },
			})
		},
		insert: func(context.Context) error {
			return sqlitex.Execute(bare, `INSERT INTO bare VALUES (?1, ?2)`, &sqlitex.ExecOptions{Args: []any{crand.Text(), text}})
		},
	}
}

func newFilledPostgres(b *testing.B) filledIndex {
	b.Helper()
	server := servertest.Postgres(b, "fsync=on", "max_wal_size=8GB")
	records, err := postgres.Open(b.Context(), server.URLWith(func(_ *url.URL, p url.Values) { p.Set("schema", "pawl") }))
	if err != nil {
		b.Fatal(err)
	}
	index := files.NewIndex(records)
	b.Cleanup(func() { _ = index.Close() })
	bare, err := pgx.Connect(b.Context(), server.URL)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = bare.Close(context.Background()) })
	fillRecords(b, records, writeFirst(b, index))
	for _, sql := range []string{"CREATE TABLE bare (id text COLLATE \"C\" PRIMARY KEY, file text NOT NULL)", "VACUUM ANALYZE", "CHECKPOINT"} {
		if _, err := bare.Exec(b.Context(), sql); err != nil {
			b.Fatal(err)
		}
	}
	var text string
	if err := bare.QueryRow(b.Context(), "SELECT body FROM pawl.record LIMIT 1").Scan(&text); err != nil {
		b.Fatal(err)
	}
	return filledIndex{
		index: index,
		list: func(ctx context.Context, rng *rand.Rand) error {
			n := rng.IntN(2 * *fileRows)
			rows, err := bare.Query(ctx, `SELECT body FROM pawl.record WHERE space = $1 AND name > $2 ORDER BY name LIMIT 101`, []byte("entity/"+rowEntity(n)), []byte(rowID(n)))
			if err != nil {
				return err
			}
			_, err = pgx.CollectRows(rows, pgx.RowTo[string])
			return err
		},
		insert: func(ctx context.Context) error {
			_, err := bare.Exec(ctx, `INSERT INTO bare VALUES ($1, $2)`, crand.Text(), text)
			return err
		},
	}
}
