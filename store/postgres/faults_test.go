package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pawlhq/pawl/proof/servertest"
	"github.com/pawlhq/pawl/store"
)

func flaky(t *testing.T, server *servertest.PostgresServer, lose func([]byte) bool) string {
	t.Helper()
	u, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	relay := servertest.NewLossyProxy(t, u.Host, lose)
	return server.URLWith(func(u *url.URL, _ url.Values) { u.Host = relay.Addr })
}

func TestLostAnswers(t *testing.T) {
	t.Parallel()
	server := servertest.Postgres(t)
	var lose atomic.Pointer[string]
	s := openStore(t, flaky(t, server, func(piece []byte) bool {
		tag := lose.Load()
		return tag != nil && bytes.Contains(piece, []byte(*tag+"\x00"))
	}))
	direct := openStore(t, server.URL)
	for i, tc := range []struct {
		write  func(context.Context, []store.Change) ([]store.Outcome, error)
		lost   string
		want   error
		landed bool
	}{
		{s.Swap, "COMMIT", store.ErrUnclear, true},
		{s.Swap, "BEGIN", store.ErrUnclear, true},
		{s.Apply, "BEGIN", store.ErrThrottled, false},
		{s.Apply, "COMMIT", store.ErrUnclear, true},
	} {
		a, b := newRecord("s", strconv.Itoa(i)), newRecord("s", strconv.Itoa(i)+"b")
		lose.Store(&tc.lost)
		_, err := tc.write(t.Context(), []store.Change{insertion(a), insertion(b)})
		lose.Store(nil)
		if !errors.Is(err, tc.want) {
			t.Errorf("%d: %v: want %v", i, err, tc.want)
		}
		if landed := direct.load(t, a.Key) != nil; landed != tc.landed {
			t.Errorf("%d: landed: %v", i, landed)
		}
	}
}

func TestErrorKinds(t *testing.T) {
	t.Parallel()
	s := &Store{schema: DefaultSchema}
	for _, tc := range []struct {
		err  error
		want error
	}{
		{&pgconn.PgError{SeverityUnlocalized: "ERROR", Code: "40001"}, store.ErrThrottled},
		{&pgconn.PgError{SeverityUnlocalized: "ERROR", Code: "55P03"}, store.ErrThrottled},
		{&pgconn.PgError{SeverityUnlocalized: "ERROR", Code: "57014"}, store.ErrThrottled},
		{&pgconn.PgError{SeverityUnlocalized: "ERROR", Code: "53100"}, store.ErrThrottled},
		{&pgconn.PgError{SeverityUnlocalized: "ERROR", Code: "23514"}, store.ErrRejected},
		{&pgconn.PgError{SeverityUnlocalized: "ERROR", Code: "42501"}, store.ErrUnusable},
		{&pgconn.PgError{SeverityUnlocalized: "FATAL", Code: "57P01"}, store.ErrUnclear},
		{unsent{&pgconn.PgError{SeverityUnlocalized: "FATAL", Code: "57P01"}}, store.ErrThrottled},
		{unsent{context.DeadlineExceeded}, store.ErrThrottled},
		{context.DeadlineExceeded, store.ErrUnclear},
		{errors.New("broken pipe"), store.ErrUnclear},
	} {
		err := s.explain(t.Context(), "swap", tc.err)
		if !errors.Is(err, tc.want) {
			t.Errorf("%v: %v: want %v", tc.err, err, tc.want)
		}
		for _, other := range []error{store.ErrUnclear, store.ErrThrottled, store.ErrRejected, store.ErrUnusable} {
			if other != tc.want && errors.Is(err, other) {
				t.Errorf("%v: %v: is also %v", tc.err, err, other)
			}
		}
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	const cuts, crashes, writers = 100, 3, 4
	server := servertest.Postgres(t)
	checked := openStore(t, server.URL)
	lost := make(chan struct{})
	ctx, stop := context.WithCancel(t.Context())
	through := flaky(t, server, func([]byte) bool {
		if rand.IntN(12) > 0 {
			return false
		}
		select {
		case lost <- struct{}{}:
		case <-ctx.Done():
		}
		return true
	})
	var wg sync.WaitGroup
	made := make([]int, writers)
	for i := range writers {
		wg.Go(func() { made[i] = increment(ctx, t, through, fmt.Sprint(i)) })
	}
	for i := range cuts {
		select {
		case <-lost:
		case <-t.Context().Done():
			t.Error("the test has run out of time")
		}
		if i%(cuts/crashes) == cuts/crashes/2 {
			server.Stop()
			server.Start()
		}
	}
	stop()
	wg.Wait()
	checked.pool.Reset() // the crashes closed its connections
	for i, want := range made {
		for _, space := range []string{"a", "b"} {
			r := checked.load(t, store.Key{Space: space, Name: fmt.Sprint(i)})
			if want == 0 || r == nil || r.Body != strconv.Itoa(want) {
				t.Errorf("writer %d: %d increments were answered, and the store has %+v", i, want, r)
			}
		}
	}
}

func increment(ctx context.Context, t *testing.T, url, name string) (made int) {
	var s *Store
	for s == nil && ctx.Err() == nil {
		s, _ = Open(ctx, url) // the answers to Open may be lost as well
	}
	if s == nil {
		return 0
	}
	defer s.Close()
	now := [2]store.Record{{Key: store.Key{Space: "a", Name: name}}, {Key: store.Key{Space: "b", Name: name}}}
	for ctx.Err() == nil {
		var changes []store.Change
		for i, was := range now {
			c := replacement(was)
			c.Next.Body = strconv.Itoa(made + 1)
			changes, now[i] = append(changes, c), *c.Next
		}
		write := s.Swap
		if made%2 == 1 {
			write = s.Apply
		}
		if err := resolve(write, changes); err != nil {
			t.Errorf("increment %d of %s: %v", made+1, name, err)
			return made
		}
		made++
	}
	return made
}

// After an ambiguous answer, a refusal by the change's own record shows that it landed.
func resolve(write func(context.Context, []store.Change) ([]store.Outcome, error), changes []store.Change) error {
	for doubt := false; ; {
		out, err := write(context.Background(), changes)
		switch {
		case errors.Is(err, store.ErrThrottled):
			continue
		case errors.Is(err, store.ErrUnclear):
			doubt = true
			continue
		case err != nil:
			return err
		}
		landed := 0
		for i, o := range out {
			own := o.Refused && o.Current != nil && o.Current.Nonce == changes[i].Next.Nonce
			if o.Applied || doubt && own {
				landed++
			}
		}
		if landed < len(changes) {
			return fmt.Errorf("after an unclear answer: %v, outcomes %+v", doubt, out)
		}
		return nil
	}
}
