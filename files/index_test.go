package files_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/pawlhq/pawl/files"
	"github.com/pawlhq/pawl/internal/virtualtime"
	"github.com/pawlhq/pawl/store"
	"github.com/pawlhq/pawl/store/memory"
)

func rowOf(id string, state files.State) files.File {
	at := time.Date(2026, 1, 2, 3, 4, 5, 6_000_000, time.UTC)
	return files.File{
		ID: id, Entity: "e", Key: "files/" + id, Promise: files.Promise{Size: 10 << 20, ContentType: "text/plain; charset=\"é\x00\"", SHA256: [32]byte{1, 31: 2}, PartSize: 5 << 20},
		Idempotency: "k-" + id, UploadID: "u", State: state, WasPending: true, PutBy: at.Add(time.Minute), LandBy: at.Add(time.Hour),
		DeletedAt: at.Add(2 * time.Hour), DropAt: at.Add(3 * time.Hour), DueAt: at.Add(4 * time.Hour), CreatedAt: at, UpdatedAt: at.Add(time.Millisecond),
	}
}

func write(t *testing.T, x *files.Index, c files.Change) files.File {
	t.Helper()
	c.Limit = unlimited
	f, err := x.Apply(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestRowsAreKeptInFull(t *testing.T) {
	records := memory.New()
	x := files.NewIndex(records)
	for state := files.Pending; state <= files.Expired; state++ {
		want := write(t, x, files.Change{Next: rowOf(state.String(), state)})
		got, err := x.Load(t.Context(), want.ID)
		if d := cmp.Diff(want, got, cmpopts.IgnoreUnexported(files.File{})); err != nil || d != "" {
			t.Error(err, d)
		}
	}
	f, key := write(t, x, files.Change{Next: rowOf("newer", files.Gone)}), store.Key{Space: "file", Name: "newer"}
	replaceBody(t, records, key, func(body string) string { return strings.Replace(body, `"1.0"`, `"1.9","mood":[1]`, 1) })
	f, err := x.Load(t.Context(), f.ID)
	if err != nil {
		t.Fatal(err)
	}
	write(t, x, files.Change{From: &f, Next: f})
	if r := load(t, records, key); !strings.Contains(r.Body, `"mood":[1]`) {
		t.Errorf("%s lost what a newer version wrote", r.Body)
	}
}

func load(t *testing.T, s store.Store, k store.Key) store.Record {
	t.Helper()
	found, err := s.Load(t.Context(), []store.Key{k})
	if err != nil || len(found) != 1 {
		t.Fatal(found, err)
	}
	return found[0]
}

func replaceBody(t *testing.T, s store.Store, k store.Key, edit func(string) string) {
	t.Helper()
	r := load(t, s, k)
	next := r
	next.Body = edit(r.Body)
	next.Nonce[0]++
	if out, err := s.Swap(t.Context(), []store.Change{{Key: k, Expect: r.Nonce, Next: &next}}); err != nil || !out[0].Applied {
		t.Fatal(out, err)
	}
}

func TestListsShowIndexedFiles(t *testing.T) {
	x := files.NewIndex(memory.New())
	for i, state := range []files.State{files.Indexed, files.Deleted, files.Indexed, files.Lost, files.Pending, files.Indexed, files.Gone} {
		write(t, x, files.Change{Next: rowOf(fmt.Sprintf("%c", 'a'+i), state)})
	}
	for _, test := range []struct {
		entity, after string
		limit         int
		want          []string
	}{
		{"e", "", 10, []string{"a", "c", "f"}}, {"e", "", 2, []string{"a", "c"}}, {"e", "a", 2, []string{"c", "f"}}, {"e", "f", 2, nil}, {"f", "", 2, nil},
	} {
		var got []string
		list, err := x.List(t.Context(), test.entity, test.after, test.limit)
		for _, f := range list {
			got = append(got, f.ID)
			if f.Entity != "e" || f.Key != "files/"+f.ID || f.Size == 0 {
				t.Errorf("%+v lacks fields that a list shows", f)
			}
		}
		if d := cmp.Diff(test.want, got); err != nil || d != "" {
			t.Error(test, err, d)
		}
	}
}

func TestUnreadableRecordsAreSkipped(t *testing.T) {
	for _, body := range []string{`{"v":"2.0"}`, `{`, `{"v":"1.0","state":"asleep"}`} {
		records := memory.New()
		s, b := newFakeBucket(2, 0)
		s.Index = files.NewIndex(records)
		for i := range 2 {
			id, _ := s.ID(orphanKey(i))
			f := write(t, s.Index, files.Change{Next: files.File{ID: id, Entity: "e", Key: orphanKey(i), State: files.Indexed, DueAt: time.Now().Add(-time.Hour)}})
			if i == 0 {
				for _, space := range []string{"file", "entity/e"} {
					replaceBody(t, records, store.Key{Space: space, Name: f.ID}, func(string) string { return body })
				}
			}
		}
		first, _ := s.ID(orphanKey(0))
		second, _ := s.ID(orphanKey(1))
		if _, err := s.Get(t.Context(), first); !errors.Is(err, files.ErrUnreadable) || !strings.Contains(err.Error(), first) {
			t.Error(err)
		}
		if list, err := s.Index.List(t.Context(), "e", "", 10); err != nil || len(list) != 1 || list[0].ID != second {
			t.Errorf("%+v, %v: want the second file", list, err)
		}
		if err := s.ReconcileNotified(t.Context(), first); err != nil {
			t.Errorf("a notification of an unreadable row blocks its queue: %v", err)
		}
		if n, err := (&files.Sweeper{Service: s}).Round(t.Context()); n != 1 || !errors.Is(err, files.ErrUnreadable) {
			t.Errorf("%d reconciled, %v: want 1, and that one row is unreadable", n, err)
		}
		r, err := s.Audit(t.Context(), b.list, files.AuditOptions{Limit: 10})
		if !errors.Is(err, files.ErrUnreadable) || r.Rows != 2 || r.Orphans > 0 || r.Failed == 0 {
			t.Errorf("%+v, %v: want a failure, and no orphan", r, err)
		}
	}
}

func TestMismatchedEntryEndsChange(t *testing.T) {
	records := memory.New()
	x := files.NewIndex(records)
	f := write(t, x, files.Change{Next: rowOf("a", files.Indexed)})
	replaceBody(t, records, store.Key{Space: "entity/e", Name: "a"}, strings.Clone)
	if _, err := x.Apply(t.Context(), files.Change{From: &f, Next: f}); !errors.Is(err, files.ErrUnreadable) {
		t.Error(err)
	}
}

type slowStore struct {
	store.Store
	answer func(changes []store.Change) error

	mu      sync.Mutex
	applies int
}

func (s *slowStore) Apply(ctx context.Context, changes []store.Change) ([]store.Outcome, error) {
	time.Sleep(10 * time.Millisecond)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.applies++
	if s.answer != nil {
		if err := s.answer(changes); err != nil {
			return nil, err
		}
	}
	return s.Store.Apply(ctx, changes)
}

func uploads(t *testing.T, s *slowStore, n int, contexts ...context.Context) (x *files.Index, errs []error) {
	t.Helper()
	x, errs = files.NewIndex(s), make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		ctx := t.Context()
		if i < len(contexts) && contexts[i] != nil {
			ctx = contexts[i]
		}
		wg.Go(func() {
			_, errs[i] = x.Apply(ctx, files.Change{Next: rowOf(fmt.Sprintf("%02d", i), files.Pending), Limit: unlimited})
		})
		synctest.Wait()
	}
	wg.Wait()
	return x, errs
}

func TestUploadsShareBatches(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		s := &slowStore{Store: memory.New()}
		gone, cancel := context.WithTimeout(t.Context(), 15*time.Millisecond) // ends during the second batch
		defer cancel()
		x, errs := uploads(t, s, 33, nil, nil, nil, gone)
		for i, err := range errs {
			if (err != nil) != (i == 3) || err != nil && !errors.Is(err, files.ErrUnclear) {
				t.Errorf("upload %d: %v", i, err)
			}
		}
		if used, err := x.Used(t.Context(), "e"); err != nil || used.Open != 33 || s.applies != 5 {
			t.Errorf("%+v, %v after %d batches: want 33 open uploads after 5", used, err, s.applies)
		}
	})
}

func TestCanceledClientFinishesItsBatch(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		gone, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
		defer cancel()
		x, errs := uploads(t, &slowStore{Store: memory.New()}, 9, gone)
		if err := errors.Join(errs...); err != nil {
			t.Error(err)
		}
		if used, err := x.Used(t.Context(), "e"); err != nil || used.Open != 9 {
			t.Error(used, err)
		}
	})
}

func TestRejectedUploadFailsAlone(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		throttled := 2
		s := &slowStore{Store: memory.New(), answer: func(changes []store.Change) error {
			if throttled--; throttled >= 0 {
				return store.ErrThrottled
			}
			if slices.ContainsFunc(changes, func(c store.Change) bool { return c.Key.Name == "05" }) {
				return store.ErrRejected
			}
			return nil
		}}
		x, errs := uploads(t, s, 9)
		for i, err := range errs {
			if i == 5 && !errors.Is(err, store.ErrRejected) || i != 5 && err != nil {
				t.Errorf("upload %d: %v", i, err)
			}
		}
		if used, err := x.Used(t.Context(), "e"); err != nil || used.Open != 8 {
			t.Error(used, err)
		}
	})
}
