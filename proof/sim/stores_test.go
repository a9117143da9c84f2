package sim

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/pawlhq/pawl/internal/simkit"
	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/proof/servertest"
	"github.com/pawlhq/pawl/store/dynamo"
	"github.com/pawlhq/pawl/store/memory"
	"github.com/pawlhq/pawl/store/postgres"
	"github.com/pawlhq/pawl/store/sqlite"
)

// I13, including nonces. Rows that are due at the same instant are in key order here, because their
// order changes the world.
func TestStores(t *testing.T) {
	pool := newThreads()
	defer pool.Close()
	first := firstSeed(t)
	postgresServer, dynamoServer := servertest.Postgres(t), servertest.DynamoDB(t)
	t.Setenv("AWS_ACCESS_KEY_ID", "pawl")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "pawl")
	for n := range uint64(500) {
		s := first + n
		want := endOf(t, pool, s, &refStore{})
		stores := map[string]ledger.Store{"memory": ledger.NewRows(memory.New())}
		if n < 10 {
			stores["SQLite"] = openSQLite(t)
		}
		if n < 5 {
			stores["PostgreSQL"] = openPostgres(t, postgresServer)
			stores["DynamoDB"] = openDynamo(t, dynamoServer)
		}
		for name, store := range stores {
			if diff := gocmp.Diff(want, endOf(t, pool, s, inKeyOrder{store})); diff != "" {
				t.Errorf("%s: seed %d ends differently with %s (-refStore +%s):\n%s", I13, s, name, name, diff)
			}
			if err := store.Close(); err != nil {
				t.Error(err)
			}
		}
		if t.Failed() {
			t.Fatalf("repeat it with: go test ./proof/sim -run 'TestStores$' -seed %d", s)
		}
	}
}

type inKeyOrder struct{ ledger.Store }

func (s inKeyOrder) Due(ctx context.Context, pipeline string, before time.Time, limit int) ([]ledger.Row, error) {
	const all = 100 // a world has fewer rows
	rows, err := s.Store.Due(ctx, pipeline, before, all)
	slices.SortFunc(rows, func(a, b ledger.Row) int {
		return cmp.Or(a.Due().Compare(b.Due()), a.RowKey.Compare(b.RowKey))
	})
	return rows[:min(limit, len(rows))], err
}

func openSQLite(t *testing.T) ledger.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "ledger.db"))
	if err != nil {
		t.Fatal(err)
	}
	return ledger.NewRows(s)
}

func openPostgres(t *testing.T, server *servertest.PostgresServer) ledger.Store {
	t.Helper()
	s, err := postgres.Open(t.Context(), server.URL+"&schema=s"+strings.ToLower(rand.Text()))
	if err != nil {
		t.Fatal(err)
	}
	return ledger.NewRows(s)
}

func openDynamo(t *testing.T, server *servertest.Tables) ledger.Store {
	t.Helper()
	url := server.NewTable()
	if err := dynamo.Create(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	s, err := dynamo.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	return ledger.NewRows(s)
}

func endOf(t *testing.T, pool *threadPool, seed uint64, store ledger.Store) []string {
	t.Helper()
	h := runWorld(pool, simkit.NewTape(seed), store, nil)
	var keys []ledger.RowKey
	for i := range h.rows {
		keys = append(keys, h.rows[i].RowKey)
	}
	rows, err := store.Load(context.Background(), keys)
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(rows, func(a, b ledger.Row) int { return a.RowKey.Compare(b.RowKey) })
	end := []string{fmt.Sprintf("%d steps", h.steps)}
	for i := range rows {
		b, err := ledger.Encode(&rows[i])
		if err != nil {
			t.Fatal(err)
		}
		end = append(end, rows[i].RowKey.String()+" "+hex.EncodeToString(rows[i].Nonce[:])+" "+string(b))
	}
	return end
}
