package doctor_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/bucket/buckettest"
	"github.com/pawlhq/pawl/doctor"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/internal/virtualtime"
)

var names = []string{
	"create-once", "replace-match", "match-missing", "delete-match", "quoted-etags",
	"read-after-write", "list-after-write", "read-after-delete", "expired-signature", "copy-whole", "copy-parts", "whole-reads",
}

// verdicts returns the checks that are not ok. No object may remain in the store.
func verdicts(t *testing.T, s bucket.Store, r *doctor.Report) map[string]doctor.Verdict {
	t.Helper()
	var found []string
	bad := make(map[string]doctor.Verdict)
	for _, c := range r.Checks {
		found = append(found, c.Name)
		if c.Means == "" || c.Verdict == "" || c.Verdict != doctor.OK && c.Detail == "" {
			t.Errorf("%+v says too little", c)
		}
		if c.Verdict != doctor.OK {
			bad[c.Name] = c.Verdict
		}
	}
	if diff := cmp.Diff(names, found); diff != "" {
		t.Errorf("checks (-want +got):\n%s", diff)
	}
	if keys := left(t, s); len(keys) > 0 {
		t.Errorf("left behind: %q", keys)
	}
	return bad
}

// examine runs in virtual time.
func examine(t *testing.T, s bucket.Store) *doctor.Report {
	t.Helper()
	r, err := doctor.Examine(t.Context(), s, name, "", doctor.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestAllIsWell(t *testing.T) {
	s := memory()
	var reported []string
	r, err := doctor.Examine(t.Context(), s, name, "some/", doctor.Options{Progress: func(check string, done, total int) {
		if done != len(reported) || total != len(names) {
			t.Errorf("%s: %d of %d", check, done, total)
		}
		reported = append(reported, check)
	}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]doctor.Verdict{}, verdicts(t, s, r)); diff != "" {
		t.Errorf("verdicts (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(names, reported); diff != "" {
		t.Errorf("progress (-want +got):\n%s", diff)
	}
	if r.Bucket != name || !strings.HasPrefix(r.Prefix, "some/.pawl-doctor/") || !r.Safe() {
		t.Errorf("%+v", r)
	}
	for _, f := range r.Features {
		if f.Safety != doctor.Safe || f.Detail != "" {
			t.Errorf("%+v", f)
		}
	}
}

// Some stores normalize these prefixes.
func TestPrefixesThatAreNoPaths(t *testing.T) {
	for _, prefix := range []string{"/", "//", "a//", "./", "a/../"} {
		_, err := doctor.Examine(t.Context(), memory(), name, prefix, doctor.Options{})
		if !errors.Is(err, bucket.ErrInvalid) || !strings.Contains(err.Error(), "choose another key") {
			t.Errorf("%q: %v", prefix, err)
		}
	}
}

// Only the check of the broken property must fail.
func TestEachFaultIsFound(t *testing.T) {
	head := func(change func(*bucket.Info)) *altered {
		s := &altered{Store: memory()}
		s.head = func(ctx context.Context, ref event.Object) (bucket.Info, error) {
			info, err := s.Store.Head(ctx, ref)
			change(&info)
			return info, err
		}
		return s
	}
	for _, tc := range []struct {
		fault  string
		store  bucket.Store
		want   map[string]doctor.Verdict
		detail string
	}{
		{"If-None-Match ignored", ignoringIfNoneMatch(), one("create-once", doctor.Ignored), "If-None-Match: * was accepted"},
		{"If-Match ignored", ignoringIfMatch(), one("replace-match", doctor.Ignored), "If-Match was accepted"},
		{"If-Match creates", creatingOnIfMatch(), one("match-missing", doctor.Ignored), "If-Match was accepted"},
		{"If-Match ignored on DELETE", ignoringOnDelete(), one("delete-match", doctor.Ignored), "removed the object"},
		{"two create", letTwoWin("create-once-race"), one("create-once", doctor.Ignored), "round 1, If-None-Match: *: 2 of 32 concurrent writers"},
		{"two replace", letTwoWin("replace-match-race"), one("replace-match", doctor.Ignored), "round 1, If-Match: 2 of 32 concurrent writers"},
		{"refused, and landed", refusingTooLate("create-once"), one("create-once", doctor.Failed), "was rejected, but it landed"},
		{"no conditional writes", refusing(bucket.ErrInvalid), map[string]doctor.Verdict{
			"create-once": doctor.Failed, "replace-match": doctor.Failed, "match-missing": doctor.Failed, "quoted-etags": doctor.Failed,
			"copy-whole": doctor.Failed, "copy-parts": doctor.Failed,
		}, "the store rejected the request"},
		{"always conflicts", refusing(bucket.ErrConflict), map[string]doctor.Verdict{
			"create-once": doctor.Unclear, "replace-match": doctor.Unclear, "match-missing": doctor.Unclear, "quoted-etags": doctor.Unclear,
			"copy-whole": doctor.Unclear, "copy-parts": doctor.Unclear,
		}, "conflicting write"},
		{"never holds", refusing(bucket.ErrPrecondition), map[string]doctor.Verdict{
			"create-once": doctor.Failed, "replace-match": doctor.Failed, "quoted-etags": doctor.Failed,
			"copy-whole": doctor.Failed, "copy-parts": doctor.Failed,
		}, "although the condition held"},
		{"If-None-Match ignored on copies", copyingUnchecked(func(c *bucket.Condition, _ bool) { c.IfAbsent = false }), one("copy-whole", doctor.Ignored), "it ignores If-None-Match"},
		{"If-Match ignored on copies", copyingUnchecked(func(c *bucket.Condition, exists bool) {
			if exists {
				c.IfMatch = ""
			}
		}), one("copy-whole", doctor.Ignored), "it ignores If-Match"},
		{"a copy with If-Match creates", copyingUnchecked(func(c *bucket.Condition, exists bool) {
			if !exists {
				c.IfMatch = ""
			}
		}), one("copy-whole", doctor.Ignored), "it ignores If-Match on a missing key"},
		{"copies keep the metadata of the source", copying(func(from bucket.Source, o bucket.Object, c bucket.Condition, _ bool) (bucket.Source, bucket.Object, bucket.Condition, error) {
			o.Metadata = map[string]string{"pawl-doctor": "source"}
			return from, o, c, nil
		}), one("copy-whole", doctor.Failed), "does not have the metadata"},
		{"copies denied", copying(func(from bucket.Source, o bucket.Object, c bucket.Condition, _ bool) (bucket.Source, bucket.Object, bucket.Condition, error) {
			return from, o, c, bucket.ErrDenied
		}), one("copy-whole", doctor.Failed), "the store denies copies"},
		{"copies any source", copyingAny(), map[string]doctor.Verdict{
			"copy-whole": doctor.Ignored, "copy-parts": doctor.Ignored,
		}, "precondition on the source"},
		{"two copy", letTwoCopy(), map[string]doctor.Verdict{
			"copy-whole": doctor.Ignored, "copy-parts": doctor.Ignored,
		}, "2 of 8 concurrent writers"},
		{"removals answered, not done", sparing(), one("delete-match", doctor.Failed), "removed nothing"},
		{"HEAD with quotes", head(func(i *bucket.Info) { i.ETag = `"` + i.ETag + `"` }), map[string]doctor.Verdict{
			"quoted-etags": doctor.Failed, "read-after-write": doctor.Failed,
		}, "PUT returns the ETag"},
		{"other ETags listed", listing(func(i bucket.Info) (bucket.Info, bool) { i.ETag = strings.ToUpper(i.ETag); return i, true }), map[string]doctor.Verdict{
			"quoted-etags": doctor.Failed, "list-after-write": doctor.Failed,
		}, "LIST"},
		{"stale GET", &readingBefore("read-after-write", func(_, _ bucket.Info, found bool) bool { return found }).altered,
			one("read-after-write", doctor.Failed), "a GET does not show"},
		{"hidden in listings", listing(func(i bucket.Info) (bucket.Info, bool) {
			return i, !strings.Contains(i.Key, "list-after-write-3")
		}), one("list-after-write", doctor.Failed), "a listing does not show an object that was just written"},
		{"all hidden in listings", listing(func(i bucket.Info) (bucket.Info, bool) { return i, false }),
			one("list-after-write", doctor.Failed), "a listing does not show an object that was just written"},
		{"found after removal", &readingBefore("read-after-delete", func(_, _ bucket.Info, found bool) bool { return !found }).altered,
			one("read-after-delete", doctor.Failed), "a GET still finds"},
		{"older content, newer ETag", &mixing(false).altered, one("whole-reads", doctor.Failed), "older content with a newer ETag"},
		{"content cut off", &cutting().altered, one("whole-reads", doctor.Failed), "incomplete content"},
		{"no ETags", withoutETags(), map[string]doctor.Verdict{
			"replace-match": doctor.Failed, "match-missing": doctor.Failed, "delete-match": doctor.Failed,
			"quoted-etags": doctor.Failed, "list-after-write": doctor.Failed, "whole-reads": doctor.Failed,
			"copy-whole": doctor.Failed, "copy-parts": doctor.Failed,
		}, "no ETag"},
		{"HEAD finds nothing", blind(), map[string]doctor.Verdict{
			"quoted-etags": doctor.Failed, "read-after-write": doctor.Failed,
			"copy-whole": doctor.Failed, "copy-parts": doctor.Failed,
		}, "a HEAD does not find"},
		{"HEAD finds what was removed", clairvoyant(), one("read-after-delete", doctor.Failed), "a HEAD still finds"},
		{"removals hidden in listings", &listingRemoved().altered, one("list-after-write", doctor.Failed), "still shows a removed object"},
		{"expired signatures accepted", &altered{Store: memory(), forever: true}, one("expired-signature", doctor.Ignored), "an hour after its signature expired"},
		{"no signatures and no copies", struct{ bucket.Store }{memory()}, map[string]doctor.Verdict{
			"expired-signature": doctor.Failed, "copy-whole": doctor.Failed, "copy-parts": doctor.Failed,
		}, "cannot sign"},
		{"missing while overwritten", vanishing(), one("whole-reads", doctor.Failed), "found no object"},
	} {
		t.Run(tc.fault, func(t *testing.T) {
			virtualtime.Test(t, func(t *testing.T) {
				r := examine(t, tc.store)
				if diff := cmp.Diff(tc.want, verdicts(t, tc.store, r)); diff != "" {
					t.Errorf("verdicts (-want +got):\n%s%+v", diff, r.Checks)
				}
				if !slices.ContainsFunc(r.Checks, func(c doctor.Check) bool { return strings.Contains(c.Detail, tc.detail) }) {
					t.Errorf("no check says %q: %+v", tc.detail, r.Checks)
				}
			})
		})
	}
}

func one(check string, v doctor.Verdict) map[string]doctor.Verdict {
	return map[string]doctor.Verdict{check: v}
}

func refusing(kind error) *altered {
	s := &altered{Store: memory()}
	s.put = func(ctx context.Context, ref event.Object, o bucket.Object, c bucket.Condition) (string, error) {
		if c != (bucket.Condition{}) {
			return "", fmt.Errorf("%w (a fault)", kind)
		}
		return s.Store.Put(ctx, ref, o, c)
	}
	return s
}

func refusingTooLate(key string) *altered {
	s := &altered{Store: memory()}
	s.put = func(ctx context.Context, ref event.Object, o bucket.Object, c bucket.Condition) (string, error) {
		if strings.HasSuffix(ref.Key, key) && exists(s.Store, ref) {
			_, _ = s.Store.Put(ctx, ref, o, bucket.Condition{})
			return "", bucket.ErrPrecondition
		}
		return s.Store.Put(ctx, ref, o, c)
	}
	return s
}

func sparing() *altered {
	s := &altered{Store: memory()}
	s.remove = func(ctx context.Context, ref event.Object, c bucket.Condition) error {
		if c.IfMatch != "" {
			return nil
		}
		return s.Store.Delete(ctx, ref, c)
	}
	return s
}

// listing changes only listings of an examination's prefix.
func listing(change func(bucket.Info) (_ bucket.Info, shown bool)) *altered {
	s := &altered{Store: memory()}
	s.list = func(ctx context.Context, b, prefix, after string) iter.Seq2[bucket.Info, error] {
		return func(yield func(bucket.Info, error) bool) {
			for info, err := range s.Store.List(ctx, b, prefix, after) {
				shown := true
				if prefix != "" {
					info, shown = change(info)
				}
				if shown && !yield(info, err) {
					return
				}
			}
		}
	}
	return s
}

func vanishing() *altered {
	s := &altered{Store: memory()}
	s.get = func(ctx context.Context, ref event.Object) (bucket.Info, io.ReadCloser, error) {
		if strings.Contains(ref.Key, "whole-reads") {
			return bucket.Info{}, nil, bucket.ErrNotFound
		}
		return s.Store.Get(ctx, ref)
	}
	return s
}

// Rounds with only conflicts are not a failure.
func TestUndecidedRaces(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		s := &altered{Store: memory()}
		s.put = func(ctx context.Context, ref event.Object, o bucket.Object, c bucket.Condition) (string, error) {
			if strings.HasSuffix(ref.Key, "create-once-race-1") || strings.HasSuffix(ref.Key, "create-once-race-5") {
				return "", bucket.ErrConflict
			}
			return s.Store.Put(ctx, ref, o, c)
		}
		r := examine(t, s)
		if diff := cmp.Diff(map[string]doctor.Verdict{}, verdicts(t, s, r)); diff != "" {
			t.Errorf("verdicts (-want +got):\n%s", diff)
		}
		if !strings.Contains(r.Checks[0].Detail, "2 of 8 rounds of concurrent writers had no winner") {
			t.Errorf("%+v", r.Checks[0])
		}
	})
}

func TestDeniedInARace(t *testing.T) {
	s := &altered{Store: memory()}
	s.put = func(ctx context.Context, ref event.Object, o bucket.Object, c bucket.Condition) (string, error) {
		etag, err := s.Store.Put(ctx, ref, o, c)
		if err != nil && strings.HasSuffix(ref.Key, "race-2") {
			err = bucket.ErrDenied
		}
		return etag, err
	}
	if r, err := doctor.Examine(t.Context(), s, name, "", doctor.Options{}); r != nil || !errors.Is(err, bucket.ErrDenied) {
		t.Errorf("%v, %v", r, err)
	}
	if keys := left(t, s); len(keys) > 0 {
		t.Errorf("left behind: %q", keys)
	}
}

// An old content is no proof if a write may have landed late.
func TestStaleAfterALostAnswer(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		s := &readingBefore("read-after-write", func(_, _ bucket.Info, found bool) bool { return found }).altered
		f := buckettest.NewFaults(s)
		f.Next(buckettest.Put, buckettest.Pass, buckettest.Lost)
		r := examine(t, f)
		if diff := cmp.Diff(one("read-after-write", doctor.Unclear), verdicts(t, s, r)); diff != "" {
			t.Errorf("verdicts (-want +got):\n%s%+v", diff, r.Checks)
		}
	})
}

func TestBrokenReads(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		s := &altered{Store: memory()}
		var gets atomic.Int64 // readers run in parallel
		s.get = func(ctx context.Context, ref event.Object) (bucket.Info, io.ReadCloser, error) {
			info, body, err := s.Store.Get(ctx, ref)
			if n := gets.Add(1); err == nil && n%2 == 0 && !strings.HasSuffix(ref.Key, "whole-reads") {
				body = io.NopCloser(io.MultiReader(io.LimitReader(body, 3), iotest.ErrReader(bucket.ErrUnavailable)))
			}
			return info, body, err
		}
		r := examine(t, s)
		if diff := cmp.Diff(map[string]doctor.Verdict{}, verdicts(t, s, r)); diff != "" {
			t.Errorf("verdicts (-want +got):\n%s%+v", diff, r.Checks)
		}
	})
}

func TestFeatures(t *testing.T) {
	for _, tc := range []struct {
		name  string
		store bucket.Store
		want  map[string]string // those that are not Safe
	}{
		{"If-None-Match ignored", ignoringIfNoneMatch(), map[string]string{
			"pipeline outputs":            "not safe: it ignores If-None-Match (create-once)",
			"locks":                       "not safe: it ignores If-None-Match (create-once)",
			"update":                      "not safe: it ignores If-None-Match (create-once)",
			"semaphores and shared locks": "not safe: it ignores If-None-Match (create-once)",
			"archives":                    "not safe: it ignores If-None-Match (create-once)",
		}},
		{"If-Match creates", creatingOnIfMatch(), map[string]string{
			"locks":                       "not safe: it ignores If-Match on a missing key (match-missing)",
			"update":                      "not safe: it ignores If-Match on a missing key (match-missing)",
			"semaphores and shared locks": "not safe: it ignores If-Match on a missing key (match-missing)",
		}},
		{"expired signatures accepted", &altered{Store: memory(), forever: true}, map[string]string{
			"archives": "not safe: it ignores that a signature has expired (expired-signature)",
		}},
		{"no copies", copyingAny(), map[string]string{
			"copy": "safe with a limit: objects below 16 MiB stream through the worker; objects that the store cannot copy with one request stream through the worker, and objects above 5 GiB cannot be copied",
		}},
		{"If-Match ignored on DELETE", ignoringOnDelete(), map[string]string{
			"removals of outputs": "safe with a limit: it may remove an output that another worker has just written: verification repairs it after lease.late_write_window",
		}},
		{"hidden in listings", listing(func(i bucket.Info) (bucket.Info, bool) {
			return i, !strings.Contains(i.Key, "list-after-write-3")
		}), map[string]string{
			"semaphores and shared locks": "not safe: list-after-write failed", "audit": "not safe: list-after-write failed",
			"archives": "not safe: list-after-write failed",
		}},
		{"stale GET", &readingBefore("read-after-write", func(_, _ bucket.Info, found bool) bool { return found }).altered, map[string]string{
			"pipeline outputs":            "safe with a limit: an object may be invisible for a while after a write: set objects.eventually_consistent in the configuration",
			"locks":                       "not safe: read-after-write failed",
			"update":                      "not safe: read-after-write failed",
			"semaphores and shared locks": "not safe: read-after-write failed",
			"archives":                    "not safe: read-after-write failed",
		}},
	} {
		virtualtime.Test(t, func(t *testing.T) {
			r := examine(t, tc.store)
			got, safe := make(map[string]string), true
			for _, f := range r.Features {
				if f.Safety != doctor.Safe {
					got[f.Name] = string(f.Safety) + ": " + f.Detail
				}
				safe = safe && f.Safety != doctor.Unsafe
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.name, diff)
			}
			safety, why := r.Locks()
			switch want := got["locks"]; {
			case want == "" && safety != doctor.Safe, want != "" && safety == doctor.Safe, safety == doctor.Unsafe && string(safety)+": "+why != want:
				t.Errorf("%s: for locks it is %q: %q, want %q", tc.name, safety, why, want)
			}
			listings, why := r.Listings()
			if hidden := got["audit"]; (listings == doctor.Safe) != (hidden == "") || hidden != "" && string(listings)+": "+why != hidden {
				t.Errorf("%s: Listings returned %q: %q, want %q", tc.name, listings, why, hidden)
			}
			if r.Safe() != safe {
				t.Errorf("%s: safe is %v", tc.name, r.Safe())
			}
		})
	}
}

// A replacement with the older ETag is rejected.
func TestNewerContentIsHarmless(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		s := &mixing(true).altered
		r := examine(t, s)
		if diff := cmp.Diff(map[string]doctor.Verdict{}, verdicts(t, s, r)); diff != "" {
			t.Errorf("verdicts (-want +got):\n%s", diff)
		}
		if last := r.Checks[len(r.Checks)-1]; !strings.Contains(last.Detail, "newer than its ETag") || !r.Safe() {
			t.Errorf("%+v", last)
		}
	})
}

func TestLostAnswers(t *testing.T) {
	for _, tc := range []struct {
		name  string
		fault buckettest.Fault
		times int // fewer for slow checks
	}{
		{"answers", buckettest.Landed, 1000}, {"doubled", buckettest.Twice, 1000},
		{"requests", buckettest.Lost, 190}, {"conflicts", buckettest.Answer(bucket.ErrConflict), 190},
	} {
		t.Run(tc.name, func(t *testing.T) {
			virtualtime.Test(t, func(t *testing.T) {
				s := buckettest.NewFaults(memory())
				for range tc.times {
					s.Next(buckettest.Put, buckettest.Pass, buckettest.Pass, tc.fault)
				}
				for range 100 {
					s.Next(buckettest.Delete, buckettest.Pass, buckettest.Pass, buckettest.Lost)
				}
				r := examine(t, s)
				if diff := cmp.Diff(map[string]doctor.Verdict{}, verdicts(t, s, r)); diff != "" {
					t.Errorf("verdicts (-want +got):\n%s%+v", diff, r.Checks)
				}
			})
		})
	}
}

func TestWhatStops(t *testing.T) {
	for _, tc := range []struct {
		op   buckettest.Op
		kind error
	}{
		{buckettest.Put, bucket.ErrNoBucket}, {buckettest.Put, bucket.ErrDenied}, {buckettest.Put, bucket.ErrInvalid},
		{buckettest.Get, bucket.ErrDenied}, {buckettest.Get, bucket.ErrUnavailable},
		{buckettest.List, bucket.ErrDenied}, {buckettest.Delete, bucket.ErrDenied},
	} {
		s := buckettest.NewFaults(memory())
		s.Next(tc.op, buckettest.Answer(tc.kind))
		r, err := doctor.Examine(t.Context(), s, name, "", doctor.Options{})
		if !errors.Is(err, tc.kind) || r != nil || !strings.Contains(err.Error(), "s3://"+name) {
			t.Errorf("%s: %v: %v, %v", tc.op, tc.kind, r, err)
		}
		if keys := left(t, s); len(keys) > 0 {
			t.Errorf("%s: left behind: %q", tc.op, keys)
		}
	}
}

func TestCleaningUpFails(t *testing.T) {
	s := &altered{Store: memory()}
	done := false
	s.remove = func(ctx context.Context, ref event.Object, c bucket.Condition) error {
		if done {
			return bucket.ErrDenied
		}
		return s.Store.Delete(ctx, ref, c)
	}
	r, err := doctor.Examine(t.Context(), s, name, "", doctor.Options{Progress: func(check string, _, _ int) { done = check == "whole-reads" }})
	if r == nil || len(r.Checks) != len(names) || !errors.Is(err, bucket.ErrDenied) || !strings.Contains(err.Error(), r.Prefix) {
		t.Errorf("%+v, %v", r, err)
	}
}

// An interrupted write lands a second later.
func TestInterrupted(t *testing.T) {
	reason := errors.New("somebody pressed a key")
	for _, check := range names {
		t.Run(check, func(t *testing.T) {
			virtualtime.Test(t, func(t *testing.T) {
				s := lateLanding(t)
				ctx, cancel := context.WithCancelCause(t.Context())
				r, err := doctor.Examine(ctx, s, name, "", doctor.Options{Progress: func(now string, _, _ int) {
					if now == check {
						cancel(reason)
					}
				}})
				if r != nil || !errors.Is(err, reason) {
					t.Errorf("%+v, %v", r, err)
				}
				synctest.Wait()
				if keys := left(t, s); len(keys) > 0 {
					t.Errorf("left behind: %q", keys)
				}
			})
		})
	}
	virtualtime.Test(t, func(t *testing.T) {
		s := lateLanding(t)
		ctx, cancel := context.WithCancelCause(t.Context())
		below := s.put
		s.put = func(ctx context.Context, ref event.Object, o bucket.Object, c bucket.Condition) (string, error) {
			if strings.HasSuffix(ref.Key, "race-3") {
				cancel(reason)
			}
			return below(ctx, ref, o, c)
		}
		if r, err := doctor.Examine(ctx, s, name, "", doctor.Options{}); r != nil || !errors.Is(err, reason) {
			t.Errorf("%+v, %v", r, err)
		}
		synctest.Wait()
		if keys := left(t, s); len(keys) > 0 {
			t.Errorf("left behind: %q", keys)
		}
	})
}
