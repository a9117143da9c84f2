package postgres

import (
	"context"
	"crypto/rand"
	"net/url"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl/proof/servertest"
	"github.com/pawlhq/pawl/store"
	"github.com/pawlhq/pawl/store/storetest"
)

func openStore(t testing.TB, url string) *Store {
	t.Helper()
	s, err := Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() }) // never fails
	return s
}

func inSchema(name string) func(*url.URL, url.Values) {
	return func(_ *url.URL, p url.Values) { p.Set("schema", name) }
}

func (s *Store) must(t testing.TB, sql string, args ...any) {
	t.Helper()
	if _, err := s.pool.Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

func newRecord(space, name string) store.Record {
	r := store.Record{Key: store.Key{Space: space, Name: name}, Body: "body"}
	_, _ = rand.Read(r.Nonce[:])
	return r
}

func insertion(r store.Record) store.Change { return store.Change{Key: r.Key, Next: &r} }

func replacement(was store.Record) store.Change {
	next := newRecord(was.Space, was.Name)
	return store.Change{Key: was.Key, Expect: was.Nonce, Next: &next}
}

func (s *Store) insertAll(t testing.TB, records ...store.Record) {
	t.Helper()
	var changes []store.Change
	for _, r := range records {
		changes = append(changes, insertion(r))
	}
	for batch := range slices.Chunk(changes, traits.Batch) {
		out, err := s.Swap(t.Context(), batch)
		if err != nil {
			t.Fatal(err)
		}
		for i, o := range out {
			if !o.Applied {
				t.Fatalf("%q: %+v", batch[i].Key, o)
			}
		}
	}
}

func (s *Store) load(t testing.TB, k store.Key) *store.Record {
	t.Helper()
	found, err := s.Load(t.Context(), []store.Key{k})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) == 0 {
		return nil
	}
	return &found[0]
}

func TestConformance(t *testing.T) {
	t.Parallel()
	server := servertest.Postgres(t, "max_connections=400")
	var schemas atomic.Int64
	t.Run("suite", func(t *testing.T) {
		storetest.Run(t, storetest.Harness{
			Shared: true,
			Within: func(ctx context.Context, s store.Store, f func(store.Tx) error) error {
				return pgx.BeginFunc(ctx, s.(*Store).Pool(), func(tx pgx.Tx) error { return f(s.(*Store).In(tx)) })
			},
			New: func(t *testing.T) storetest.Open {
				at := server.URLWith(inSchema("Suite \"" + strconv.FormatInt(schemas.Add(1), 10)))
				return func() (store.Store, error) { return Open(t.Context(), at) }
			},
		})
	})
}
