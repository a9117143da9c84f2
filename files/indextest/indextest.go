// Package indextest is what an index of files must do. A files.Index exists when it
// passes.
package indextest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlhq/pawl/files"
)

// Run runs the suite. open opens an index that is empty, and t closes it.
func Run(t *testing.T, open func(t *testing.T) files.Index) {
	for name, test := range map[string]func(*testing.T, *suite){
		"Swap": testSwap, "Quota": testQuota, "Idempotency": testIdempotency, "List": testList, "Held": testHeld, "Due": testDue, "DuePages": testDuePages,
		"Scan": testScan, "Race": testRace,
	} {
		t.Run(name, func(t *testing.T) { test(t, &suite{t: t, index: open(t)}) })
	}
}

type suite struct {
	t     *testing.T
	index files.Index
}

// row is a file with every field set.
func row(id string, s files.State) files.File {
	at := time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)
	f := files.File{
		ID: id, Entity: "e", Key: "files/" + id, State: s, WasPending: true,
		Promise:  files.Promise{Size: 10, ContentType: "image/jpeg", SHA256: [32]byte{1, 255}, PartSize: 4},
		UploadID: "upload",
		PutBy:    at, LandBy: at.Add(time.Hour), DeletedAt: at.Add(2), DropAt: at.Add(3), LookAt: at.Add(4), CreatedAt: at, UpdatedAt: at,
	}
	_, _ = rand.Read(f.Nonce[:])
	return f
}

func (s *suite) apply(c files.Change, want files.Result) files.Outcome {
	s.t.Helper()
	o, err := s.index.Apply(s.t.Context(), c)
	if err != nil || o.Result != want {
		s.t.Fatalf("%+v, %v: want result %d", o, err, want)
	}
	return o
}

func (s *suite) has(want files.File) {
	s.t.Helper()
	got, err := s.index.Load(s.t.Context(), want.ID)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		s.t.Error(err, diff)
	}
}

func testSwap(t *testing.T, s *suite) {
	if _, err := s.index.Load(t.Context(), "a"); !errors.Is(err, files.ErrNotFound) {
		t.Error(err)
	}
	first := row("a", files.Pending)
	o := s.apply(files.Change{Next: first, Expect: files.Nonce{1}}, files.Refused)
	if o.Current != nil {
		t.Error(o.Current)
	}
	s.apply(files.Change{Next: first}, files.Applied)
	s.has(first)
	second := row("a", files.Indexed)
	if o = s.apply(files.Change{Next: second}, files.Refused); o.Current == nil || o.Current.Nonce != first.Nonce {
		t.Errorf("%+v", o.Current)
	}
	s.apply(files.Change{Next: second, Expect: first.Nonce}, files.Applied)
	s.has(second)
	s.apply(files.Change{Next: second, Expect: first.Nonce, Drop: true}, files.Refused)
	s.apply(files.Change{Next: second, Expect: second.Nonce, Drop: true}, files.Applied)
	if _, err := s.index.Load(t.Context(), "a"); !errors.Is(err, files.ErrNotFound) {
		t.Error(err)
	}
}

func (s *suite) used(want files.Usage) {
	s.t.Helper()
	if got, err := s.index.Used(s.t.Context(), "e"); err != nil || got != want {
		s.t.Errorf("%+v, %v: want usage %+v", got, err, want)
	}
}

func usage(bytes, open int64) files.Usage { return files.Usage{Bytes: bytes, Open: open} }

func testQuota(t *testing.T, s *suite) {
	s.used(usage(0, 0))
	a, b := row("a", files.Pending), row("b", files.Pending)
	s.apply(files.Change{Next: a, Add: usage(10, 1), Limit: usage(15, 1)}, files.Applied)
	s.apply(files.Change{Next: b, Add: usage(10, 1), Limit: usage(19, 2)}, files.OverQuota)
	s.apply(files.Change{Next: b, Add: usage(10, 1), Limit: usage(20, 1)}, files.TooManyOpen)
	s.used(usage(10, 1))
	if _, err := s.index.Load(t.Context(), "b"); !errors.Is(err, files.ErrNotFound) {
		t.Error(err)
	}
	s.apply(files.Change{Next: b, Add: usage(10, 1), Limit: usage(20, 2)}, files.Applied)
	s.used(usage(20, 2))
	s.apply(files.Change{Next: b, Expect: files.Nonce{9}, Add: usage(-10, -1)}, files.Refused)
	s.used(usage(20, 2))
	next := row("b", files.Indexed)
	s.apply(files.Change{Next: next, Expect: b.Nonce, Add: usage(0, -1)}, files.Applied)
	s.used(usage(20, 1))
	gone := row("b", files.Gone)
	s.apply(files.Change{Next: gone, Expect: next.Nonce, Add: usage(-10, 0)}, files.Applied)
	s.used(usage(10, 1))
}

func testIdempotency(t *testing.T, s *suite) {
	begin := func(id string, state files.State) files.File {
		f := row(id, state)
		f.Idempotency = "key"
		return f
	}
	holds := func(id string) {
		t.Helper()
		f, err := s.index.ByIdempotency(t.Context(), "e", "key")
		if id == "" && !errors.Is(err, files.ErrNotFound) || id != "" && (err != nil || f.ID != id) {
			t.Errorf("%s, %v: want %q", f.ID, err, id)
		}
	}
	holds("")
	a := begin("a", files.Pending)
	s.apply(files.Change{Next: a}, files.Applied)
	holds("a")
	if o := s.apply(files.Change{Next: begin("b", files.Pending)}, files.KeyTaken); o.Current == nil || o.Current.ID != "a" {
		t.Errorf("%+v", o.Current)
	}
	other := begin("c", files.Pending)
	other.Entity = "f"
	s.apply(files.Change{Next: other}, files.Applied)
	expired := begin("a", files.Expired)
	s.apply(files.Change{Next: expired, Expect: a.Nonce}, files.Applied)
	b := begin("b", files.Pending)
	s.apply(files.Change{Next: b}, files.Applied)
	holds("b")
	s.apply(files.Change{Next: expired, Expect: expired.Nonce, Drop: true}, files.Applied)
	holds("b")
	s.apply(files.Change{Next: b, Expect: b.Nonce, Drop: true}, files.Applied)
	holds("")
}

func (s *suite) fill(states ...files.State) {
	for i, state := range states {
		f := row(fmt.Sprintf("%c", 'a'+i), state)
		f.LookAt = f.CreatedAt.Add(-time.Duration(i) * time.Second)
		if i == 2 {
			f.LookAt = time.Time{}
		}
		s.apply(files.Change{Next: f}, files.Applied)
	}
}

func ids(found []files.File) (ids []string) {
	for _, f := range found {
		ids = append(ids, f.ID)
	}
	return ids
}

func testList(t *testing.T, s *suite) {
	s.fill(files.Indexed, files.Deleted, files.Indexed, files.Lost, files.Indexed, files.Pending)
	for _, test := range []struct {
		entity, after string
		limit         int
		want          []string
	}{
		{"e", "", 10, []string{"a", "c", "e"}},
		{"e", "", 2, []string{"a", "c"}},
		{"e", "c", 2, []string{"e"}},
		{"e", "e", 2, nil},
		{"f", "", 2, nil},
	} {
		got, err := s.index.List(t.Context(), test.entity, test.after, test.limit)
		if diff := cmp.Diff(test.want, ids(got)); err != nil || diff != "" {
			t.Error(test, err, diff)
		}
	}
}

func testHeld(t *testing.T, s *suite) {
	s.fill(files.Pending, files.Deleted, files.Indexed, files.Lost, files.Expired, files.Purging, files.Gone)
	for _, test := range []struct {
		entity string
		limit  int
		want   []string
	}{
		{"e", 10, []string{"a", "c", "d"}},
		{"e", 3, []string{"a", "c", "d"}},
		{"f", 10, nil},
	} {
		got, err := s.index.Held(t.Context(), test.entity, test.limit)
		found := ids(got)
		slices.Sort(found)
		if diff := cmp.Diff(test.want, found); err != nil || diff != "" {
			t.Error(test, err, diff)
		}
	}
	if got, err := s.index.Held(t.Context(), "e", 2); err != nil || len(got) != 2 {
		t.Error(ids(got), err)
	}
}

func testDue(t *testing.T, s *suite) {
	s.fill(files.Pending, files.Deleted, files.Indexed, files.Gone)
	at := row("", files.Pending).CreatedAt
	for _, test := range []struct {
		before time.Time
		limit  int
		want   []string
	}{
		{at, 10, []string{"d", "b", "a"}},
		{at.Add(-time.Second), 10, []string{"d", "b"}},
		{at, 1, []string{"d"}},
		{at.Add(-time.Minute), 1, nil},
	} {
		got, err := s.index.Due(t.Context(), test.before, nil, test.limit)
		if diff := cmp.Diff(test.want, ids(got)); err != nil || diff != "" {
			t.Error(test, err, diff)
		}
	}
}

// testDuePages reads rows of one time and of others page by page.
func testDuePages(t *testing.T, s *suite) {
	var want, got []string
	for i := range 7 {
		f := row(fmt.Sprintf("%c", 'a'+i), files.Pending)
		f.LookAt = f.CreatedAt.Add(time.Duration(i/3) * time.Second)
		s.apply(files.Change{Next: f}, files.Applied)
		want = append(want, f.ID)
	}
	var after *files.File
	for {
		page, err := s.index.Due(t.Context(), row("", files.Pending).CreatedAt.Add(time.Minute), after, 2)
		if err != nil || len(page) == 0 {
			if diff := cmp.Diff(want, got); err != nil || diff != "" {
				t.Error(err, diff)
			}
			return
		}
		got = append(got, ids(page)...)
		after = &page[len(page)-1]
	}
}

func testScan(t *testing.T, s *suite) {
	const n = 1100
	for i := range n {
		s.apply(files.Change{Next: row(fmt.Sprintf("%05d", i), files.Gone)}, files.Applied)
	}
	i := 100
	for f, err := range s.index.Scan(t.Context(), "files/00099") {
		if want := fmt.Sprintf("%05d", i); err != nil || f.ID != want {
			t.Fatalf("%s, %v: want %s", f.ID, err, want)
		}
		i++
	}
	if i != n {
		t.Errorf("%d rows", i)
	}
}

// testRace lets many change one row, and many take the last of a quota: each time
// one of them wins.
func testRace(t *testing.T, s *suite) {
	first := row("a", files.Pending)
	s.apply(files.Change{Next: first}, files.Applied)
	var won, took atomic.Int32
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			next := row("a", files.Deleted)
			if o, err := s.index.Apply(context.WithoutCancel(t.Context()), files.Change{Next: next, Expect: first.Nonce}); err != nil {
				t.Error(err)
			} else if o.Result == files.Applied {
				won.Add(1)
			}
			o, err := s.index.Apply(context.WithoutCancel(t.Context()), files.Change{Next: row(fmt.Sprintf("b%d", i), files.Pending), Add: usage(10, 1), Limit: usage(30, 30)})
			if err != nil {
				t.Error(err)
			} else if o.Result == files.Applied {
				took.Add(1)
			}
		})
	}
	wg.Wait()
	if won.Load() != 1 || took.Load() != 3 {
		t.Errorf("%d won, %d took a part of the quota: want 1 and 3", won.Load(), took.Load())
	}
	s.used(usage(30, 3))
}
