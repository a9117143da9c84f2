package audit_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl/audit"
	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
)

type fakeListing struct {
	of   bucket.Store
	edit func(all []bucket.Info) ([]bucket.Info, error)
}

func (f fakeListing) List(ctx context.Context, name, prefix, startAfter string) iter.Seq2[bucket.Info, error] {
	return func(yield func(bucket.Info, error) bool) {
		var all []bucket.Info
		for info := range f.of.List(ctx, name, prefix, startAfter) {
			all = append(all, info)
		}
		all, err := f.edit(all)
		for _, info := range all {
			if !yield(info, nil) {
				return
			}
		}
		if err != nil {
			yield(bucket.Info{}, err)
		}
	}
}

func newConvergedWorld(t *testing.T, n int) *world {
	t.Helper()
	w := newWorld(t)
	var rows []ledger.Row
	for i := range n {
		key := fmt.Sprintf("%04d", i)
		rows = append(rows, rowWithHave(key, event.Created, w.put(t, key, "a")))
	}
	w.settled(t, rows...)
	return w
}

func TestBadListings(t *testing.T) {
	broken := errors.New("the connection broke off")
	for _, test := range []struct {
		name string
		edit func(all []bucket.Info) ([]bucket.Info, error)
		want error
		says string
	}{
		{"breaks off", func(all []bucket.Info) ([]bucket.Info, error) { return all[:1500], broken }, broken, "broke off"},
		{"is denied", func([]bucket.Info) ([]bucket.Info, error) {
			return nil, fmt.Errorf("listing s3://photos/: %w", bucket.ErrDenied)
		}, bucket.ErrDenied, "denied"},
		{"repeats a page", func(all []bucket.Info) ([]bucket.Info, error) { return append(all[:2000:2000], all[1000:]...), nil }, audit.ErrListing, "1000 follows 1999"},
		{"repeats a key", func(all []bucket.Info) ([]bucket.Info, error) { return append(all[:2000:2000], all[1999:]...), nil }, audit.ErrListing, "1999 follows 1999"},
		{"is out of order", func(all []bucket.Info) ([]bucket.Info, error) {
			all[1], all[2] = all[2], all[1]
			return all, nil
		}, audit.ErrListing, "0001 follows 0002"},
		{"begins too early", func(all []bucket.Info) ([]bucket.Info, error) {
			all[0].Key = ""
			return all, nil
		}, audit.ErrListing, "must be in byte order"},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newConvergedWorld(t, 2100)
			_, err := w.auditor(t).Run(t.Context(), audit.Options{SettleWindow: time.Hour, Listing: fakeListing{w.Store, test.edit}, Ranges: 1})
			if !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.says) {
				t.Errorf("%v: want %v, and %q", err, test.want, test.says)
			}
			if raised := w.settle(t); raised != nil {
				t.Errorf("the audit raised %q", raised)
			}
			if got := w.audit(t, audit.Options{}); got.Found() > 0 || got.Listed != 2100 && test.want == audit.ErrListing {
				t.Errorf("next audit: %+v", got)
			}
		})
	}
}

func TestListingsOmit(t *testing.T) {
	w := newConvergedWorld(t, 2000)
	old := func(all []bucket.Info) ([]bucket.Info, error) {
		all = slices.DeleteFunc(all, func(o bucket.Info) bool { return "0500" <= o.Key && o.Key < "1500" })
		for i := range all {
			if all[i].Key < "0100" {
				all[i].ETag = "as it was"
			}
		}
		return all, nil
	}
	o := audit.Options{Listing: fakeListing{w.Store, old}, ListingName: "old", Ranges: 1}
	want := audit.Counts{Listed: 1000, Rows: 2000, Inspected: 100, Created: 2000, Removable: 1000, Withheld: 1000}
	if got := w.audit(t, o); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	o.AllowRemovals = true
	want.Inspected, want.Withheld, want.Contradicted = 2100, 0, 1000
	if got := w.audit(t, o); got != want {
		t.Errorf("with all removals allowed: %+v, want %+v", got, want)
	}
	if raised := w.settle(t); raised != nil {
		t.Errorf("the audit raised %q", raised)
	}
}

type denyingStore struct {
	bucket.Store
	key string
	err error
}

func (d denyingStore) Head(ctx context.Context, ref event.Object) (bucket.Info, error) {
	if ref.Key == d.key {
		return bucket.Info{}, d.err
	}
	return d.Store.Head(ctx, ref)
}

func TestInaccessibleObjects(t *testing.T) {
	w := newWorld(t)
	for _, key := range []string{"a", "b", "c"} {
		w.put(t, key, "a")
	}
	inner := w.Store
	run := func(err error) (audit.Counts, error) {
		a, newErr := audit.New(audit.Config{Ledger: w.ledger, Objects: denyingStore{inner, "b", err}, Pipelines: []audit.Pipeline{w.pipeline}})
		if newErr != nil {
			t.Fatal(newErr)
		}
		r, runErr := a.Run(t.Context(), audit.Options{SettleWindow: time.Hour})
		return r.Total(), runErr
	}
	if _, err := run(bucket.ErrCredentials); !errors.Is(err, bucket.ErrCredentials) {
		t.Errorf("without credentials: %v", err)
	}
	if got, err := run(bucket.ErrDenied); err != nil || got.Inaccessible != 1 || got.LostCreations != 2 {
		t.Errorf("one is denied: %+v, %v", got, err)
	}
	if raised := w.settle(t); len(raised) != 2 {
		t.Errorf("raised %q", raised)
	}
}

func TestVersions(t *testing.T) {
	w := newWorld(t)
	w.pipeline.EachVersion = true
	w.pipeline.Bucket = "versions"
	key := func(k, v string) ledger.RowKey {
		return ledger.RowKey{Pipeline: "p", Bucket: "versions", Key: k, VersionID: v}
	}
	put := func(k, body string) string {
		ref := event.Object{Bucket: "versions", Key: k}
		if _, err := w.Put(t.Context(), ref, bucket.Object{Body: strings.NewReader(body), Size: int64(len(body))}, bucket.Condition{}); err != nil {
			t.Fatal(err)
		}
		info, err := w.Head(t.Context(), ref)
		if err != nil {
			t.Fatal(err)
		}
		return info.VersionID
	}
	first := put("k", "one")
	second := put("k", "two two")
	put("new", "a")
	got := w.audit(t, audit.Options{Listing: versionListing{w.Store, nil}})
	if got.LostCreations != 2 {
		t.Errorf("listing of the latest versions: %+v", got)
	}
	w.settle(t)
	if got := w.audit(t, audit.Options{Listing: versionListing{w.Store, nil}}); got.Found() != 0 || got.Inspected != 0 {
		t.Errorf("again: %+v", got)
	}
	all := versionListing{w.Store, map[string][]string{"k": {second, first}}}
	if got := w.audit(t, audit.Options{Listing: all, ListingName: "all"}); got.LostCreations != 1 {
		t.Errorf("listing of all versions: %+v", got)
	}
	w.settle(t)
	rows, err := w.ledger.Load(t.Context(), []ledger.RowKey{key("k", first), key("k", second)})
	if err != nil || len(rows) != 2 {
		t.Errorf("%d rows of two versions, %v", len(rows), err)
	}
	if got := w.audit(t, audit.Options{Listing: all, ListingName: "all"}); got.Found() != 0 {
		t.Errorf("again: %+v", got)
	}
	if err := w.Delete(t.Context(), event.Object{Bucket: "versions", Key: "k", VersionID: first}, bucket.Condition{}); err != nil {
		t.Fatal(err)
	}
	all.ids["k"] = all.ids["k"][:1]
	if got := w.audit(t, audit.Options{Listing: all, ListingName: "all"}); got.LostRemovals != 1 {
		t.Errorf("a version was removed: %+v", got)
	}
}

type versionListing struct {
	bucket.Store
	ids map[string][]string
}

func (v versionListing) List(ctx context.Context, name, prefix, startAfter string) iter.Seq2[bucket.Info, error] {
	return func(yield func(bucket.Info, error) bool) {
		for info, err := range v.Store.List(ctx, name, prefix, startAfter) {
			info.VersionID = ""
			for _, id := range v.ids[info.Key] {
				one, headErr := v.Head(ctx, event.Object{Bucket: name, Key: info.Key, VersionID: id})
				if !yield(one, headErr) {
					return
				}
			}
			if v.ids[info.Key] == nil && v.ids != nil {
				one, headErr := v.Head(ctx, event.Object{Bucket: name, Key: info.Key})
				info, err = one, headErr
			}
			if v.ids[info.Key] == nil && !yield(info, err) {
				return
			}
		}
	}
}

type changingStore struct {
	bucket.Store
	when func()
}

func (m *changingStore) Head(ctx context.Context, ref event.Object) (bucket.Info, error) {
	info, err := m.Store.Head(ctx, ref)
	if m.when != nil {
		m.when()
		m.when = nil
	}
	return info, err
}

func TestRowIsLoadedBeforeHead(t *testing.T) {
	w := newWorld(t)
	w.settled(t, rowWithHave("k", event.Created, ledger.Identity{ETag: "lost"}))
	w.put(t, "k", "seen by the audit")
	objects := &changingStore{Store: w.Store}
	objects.when = func() {
		next := rowWithHave("k", event.Created, w.put(t, "k", "and then another"))
		next.Nonce, next.CreatedAt, next.UpdatedAt = ledger.Nonce{9}, w.at, w.at
		if out, err := w.ledger.Swap(t.Context(), []ledger.Change{{Key: next.RowKey, Expect: ledger.Nonce{1}, Row: &next}}); err != nil || !out[0].Applied {
			t.Fatal(out, err)
		}
	}
	a, err := audit.New(audit.Config{Ledger: w.ledger, Objects: objects, Pipelines: []audit.Pipeline{w.pipeline}})
	if err != nil {
		t.Fatal(err)
	}
	report, err := a.Run(t.Context(), audit.Options{SettleWindow: time.Hour})
	if total := report.Total(); err != nil || total.Found() != 0 || total.Inspected != 2 {
		t.Errorf("%+v, %v: want no findings after a second HEAD request", total, err)
	}
	if raised := w.settle(t); raised != nil {
		t.Errorf("the audit raised %q", raised)
	}
}

func TestAuditContinuesAfterHeadFailure(t *testing.T) {
	w := newWorld(t)
	for i := range 20 {
		w.put(t, fmt.Sprintf("k%02d", i), "a")
	}
	run := func(objects bucket.Store) audit.Counts {
		a, err := audit.New(audit.Config{Ledger: w.ledger, Objects: objects, Pipelines: []audit.Pipeline{w.pipeline}})
		if err != nil {
			t.Fatal(err)
		}
		r, err := a.Run(t.Context(), audit.Options{SettleWindow: time.Hour})
		if err != nil {
			t.Error(err)
		}
		return r.Total()
	}
	if got := run(denyingStore{w.Store, "k07", bucket.ErrUnavailable}); got.Inaccessible != 1 || got.LostCreations != 19 {
		t.Errorf("%+v", got)
	}
	if got := run(w.Store); got.Inaccessible != 0 || got.LostCreations != 1 {
		t.Errorf("again: %+v", got)
	}
}

func TestRowOfRemovedVersion(t *testing.T) {
	w := newWorld(t)
	w.pipeline.EachVersion = true
	gone := rowWithHave("k", event.Removed, ledger.Identity{})
	gone.VersionID = "removed"
	w.settled(t, gone)
	w.put(t, "k", "one")
	latest := audit.Options{Listing: versionListing{w.Store, nil}}
	if got := w.audit(t, latest); got.LostCreations != 1 {
		t.Errorf("%+v", got)
	}
}
