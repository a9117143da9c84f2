package files_test

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl/files"
	"github.com/pawlhq/pawl/store/memory"
)

type fakeBucket struct {
	files.Objects
	keys []string
}

func (b *fakeBucket) list(yield func(files.Listed, error) bool) {
	for _, key := range b.keys {
		if !yield(files.Listed{Key: key}, nil) {
			return
		}
	}
}

func (b *fakeBucket) Remove(_ context.Context, key string) error {
	b.keys = slices.DeleteFunc(b.keys, func(k string) bool { return k == key })
	return nil
}

// Stat reports an object that matches no promise.
func (b *fakeBucket) Stat(_ context.Context, key string) (files.ObjectInfo, error) {
	return files.ObjectInfo{Found: slices.Contains(b.keys, key), Size: -1, Date: time.Now()}, nil
}

func (b *fakeBucket) Uploads(context.Context, string) iter.Seq2[files.OpenUpload, error] {
	return func(func(files.OpenUpload, error) bool) {}
}

var unlimited = files.Usage{Bytes: 1 << 40, Open: 1000}

func orphanKey(n int) string { return fmt.Sprintf("files/%08d-0000-7000-8000-000000000000", n) }

func newFakeBucket(orphans, others int) (*files.Service, *fakeBucket) {
	b := &fakeBucket{}
	for i := range orphans {
		b.keys = append(b.keys, orphanKey(i))
	}
	for i := range others {
		b.keys = append(b.keys, fmt.Sprintf("files/notes-%06d", i))
	}
	return &files.Service{Index: files.NewIndex(memory.New()), Objects: b, Times: files.DefaultTimes(), Prefix: "files/"}, b
}

func TestOrphansAreKeptForGracePeriod(t *testing.T) {
	s, b := newFakeBucket(1, 100)
	now := time.Now()
	s.Now = func() time.Time { return now }
	var log bytes.Buffer
	s.Logger = slog.New(slog.NewTextHandler(&log, nil))
	seen := files.Orphans{}
	audit := func(o files.AuditOptions, orphans, removed int64) {
		t.Helper()
		r, err := s.Audit(t.Context(), b.list, o)
		if err != nil || r.Orphans != orphans || r.Removed != removed || orphans > 0 && (len(r.OrphanKeys) != 1 || r.OrphanKeys[0] != orphanKey(0)) {
			t.Errorf("%+v, %v: want %d orphans, and %d removed", r, err, orphans, removed)
		}
	}
	audit(files.AuditOptions{Orphans: seen}, 1, 0)
	now = now.Add(7*24*time.Hour - time.Second)
	audit(files.AuditOptions{Orphans: seen}, 1, 0)
	now = now.Add(time.Second)
	audit(files.AuditOptions{}, 1, 0) // another process has not seen the orphan before
	audit(files.AuditOptions{Orphans: seen, DryRun: true}, 1, 0)
	if log.Len() > 0 {
		t.Errorf("%s\nwant nothing logged", &log)
	}
	audit(files.AuditOptions{Orphans: seen}, 1, 1)
	if !strings.Contains(log.String(), "key="+orphanKey(0)) {
		t.Errorf("%s\nwant the key of the removed object", &log)
	}
	audit(files.AuditOptions{Orphans: seen}, 0, 0)
	if len(seen) > 0 {
		t.Errorf("%v is remembered", seen)
	}
}

func TestOrphansWithRowsAreKept(t *testing.T) {
	s, b := newFakeBucket(2, 0)
	listed := func(yield func(files.Listed, error) bool) {
		b.list(yield)
		id, _ := s.ID(orphanKey(0))
		if _, err := s.Index.Apply(t.Context(), files.Change{Next: files.File{ID: id, Entity: "e", Key: orphanKey(0), State: files.Indexed}, Limit: unlimited}); err != nil {
			t.Error(err)
		}
	}
	r, err := s.Audit(t.Context(), listed, files.AuditOptions{Limit: 2})
	if err != nil || r.Removed != 1 || len(b.keys) != 1 || b.keys[0] != orphanKey(0) {
		t.Errorf("%+v, %v: kept %v", r, err, b.keys)
	}
}

func TestManyOrphansAreKept(t *testing.T) {
	for _, test := range []struct {
		objects, orphans, limit int
		removed                 bool
	}{
		{100, 1, 0, true}, {99, 1, 0, false}, {10_000, 100, 0, true}, {10_100, 101, 0, false},
		{1000, 101, 101, true}, {101, 101, 100, false}, {0, 0, 0, true},
	} {
		s, b := newFakeBucket(test.orphans, test.objects-test.orphans)
		seen := files.Orphans{}
		for _, key := range b.keys[:test.orphans] {
			seen[files.Orphan{Key: key}] = time.Now().Add(-8 * 24 * time.Hour)
		}
		o := files.AuditOptions{Orphans: seen, Limit: int64(test.limit)}
		r, err := s.Audit(t.Context(), b.list, o)
		want := 0
		if test.removed {
			want = test.orphans
		}
		if err != nil || int(r.Removed) != want || r.KeepsOrphans(o) == test.removed || len(b.keys) != test.objects-want {
			t.Errorf("%+v: %+v, %v", test, r, err)
		}
	}
}

func TestWrongObjectOfExpiredFileIsRemoved(t *testing.T) {
	s, b := newFakeBucket(1, 0)
	id, _ := s.ID(orphanKey(0))
	f := files.File{ID: id, Entity: "e", Key: orphanKey(0), State: files.Pending, Promise: files.Promise{Size: 1}}
	if _, err := s.Index.Apply(t.Context(), files.Change{Next: f, Limit: unlimited}); err != nil {
		t.Fatal(err)
	}
	if f, err := s.Reconcile(t.Context(), id, false); err != nil || f.State != files.Expired || len(b.keys) > 0 {
		t.Errorf("%s, %v: left %v", f.State, err, b.keys)
	}
}
