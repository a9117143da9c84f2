package files

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

var rewrite = flag.Bool("rewrite", false, "write the transitions down as they are now")

// TestTransitions compares every transition with testdata/transitions.txt: each state and HEAD
// result, at each relevant time and one nanosecond before. After a change of the rules, run it with
// -rewrite and review the diff.
func TestTransitions(t *testing.T) {
	var now bytes.Buffer
	for _, parts := range []bool{false, true} {
		for _, f := range everyState(t, parts) {
			printReconciles(&now, f)
			printRequests(&now, f)
		}
	}
	path := filepath.Join("testdata", "transitions.txt")
	if *rewrite {
		if err := os.WriteFile(path, now.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	was, is := bytes.Split(want, []byte("\n")), bytes.Split(now.Bytes(), []byte("\n"))
	if len(was) != len(is) {
		t.Errorf("%d lines, want %d", len(is), len(was))
	}
	for i := range min(len(was), len(is)) {
		if !bytes.Equal(was[i], is[i]) {
			t.Errorf("line %d\n  is   %s\n  want %s", i+1, is[i], was[i])
		}
	}
}

// Printed times are relative to began.
var (
	began = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	times = Times{
		URL: 15 * time.Minute, Parts: 12 * time.Hour, Upload: time.Hour,
		Undelete: 48 * time.Hour, Delay: 24 * time.Hour, Skew: 15 * time.Minute,
	}
)

type named struct {
	name string
	File
}

func everyState(t *testing.T, parts bool) []named {
	p := Promise{Size: 20 << 20, ContentType: "text/plain", SHA256: [32]byte{1}}
	kind := "one piece"
	if parts {
		p.PartSize, kind = 8<<20, "in parts"
	}
	f := newFile("id", "entity", "key", "", p, began, &times)
	in := began.Add
	look := func(f File, found bool, at time.Duration) File {
		next, what := f.reconciled(ObjectInfo{Found: found, Size: f.Size, SHA256: f.SHA256, Parts: f.Parts(), Date: in(at)}, true, &times, in(at))
		if what != updated {
			t.Fatalf("a due %s after %s: %d", f.State, at, what)
		}
		return next
	}
	remove := func(f File, at time.Duration) File {
		next, err := f.deleted(&times, in(at))
		if err != nil {
			t.Fatal(err)
		}
		return next
	}
	indexed := look(f, true, time.Minute)
	removed := remove(indexed, time.Hour)
	purging := look(removed, true, 72*time.Hour)
	return []named{
		{kind + " pending", f}, {kind + " indexed", indexed}, {kind + " lost", look(indexed, false, 2*time.Minute)},
		{kind + " deleted", removed}, {kind + " deleted while pending", remove(f, time.Minute)},
		{kind + " purging", purging}, {kind + " gone", look(purging, false, 73*time.Hour)}, {kind + " expired", look(f, false, 72*time.Hour)},
	}
}

func headResults(f *File) map[string]ObjectInfo {
	good := ObjectInfo{Found: true, Size: f.Size, SHA256: f.SHA256, Parts: f.Parts()}
	longer, other, whole := good, good, good
	longer.Size++
	other.SHA256[0]++
	whole.Parts++
	return map[string]ObjectInfo{"nothing": {}, "good": good, "longer": longer, "other bytes": other, "other parts": whole}
}

func TestObjectMatchesPromise(t *testing.T) {
	for _, f := range everyState(t, true) {
		for name, seen := range headResults(&f.File) {
			if f.matches(seen) != (name == "good") {
				t.Errorf("%s: %s is good: %v", f.name, name, f.matches(seen))
			}
		}
	}
}

// The store's clock is before or at LandBy, and the service's clock is before or at DueAt.
func printReconciles(w *bytes.Buffer, f named) {
	fmt.Fprintf(w, "\n%s: land by %s, due %s, drop at %s, usage %s\n", f.name, since(f.LandBy), since(f.DueAt), since(f.DropAt), added(usageDelta(nil, &f.File)))
	due := f.DueAt
	if due.IsZero() {
		due = f.LandBy
	}
	for _, name := range []string{"nothing", "good", "other bytes"} {
		seen := headResults(&f.File)[name]
		var lines, outcomes []string
		for _, date := range []time.Time{f.LandBy.Add(-1), f.LandBy} {
			for _, now := range []time.Time{due.Add(-1), due} {
				for _, notified := range []bool{false, true} {
					seen.Date = date
					next, what := f.reconciled(seen, notified, &times, now)
					lines = append(lines, fmt.Sprintf("landed %-5t  due %-5t  notified %-5t", date.Equal(f.LandBy), now.Equal(due), notified))
					outcomes = append(outcomes, describe(&f.File, &next, what))
				}
			}
		}
		if one := slices.Compact(slices.Clone(outcomes)); len(one) == 1 {
			lines, outcomes = []string{"always"}, one
		}
		for i, line := range lines {
			fmt.Fprintf(w, "  %s, %s: %s\n", name, line, outcomes[i])
		}
	}
}

func printRequests(w *bytes.Buffer, f named) {
	now := began.Add(100 * time.Hour)
	next, err := f.deleted(&times, now)
	fmt.Fprintf(w, "  delete: %s\n", answered(&f.File, &next, err))
	next, ok := f.uploadFailed(&times, now)
	err = nil
	if !ok {
		err = ErrState
	}
	fmt.Fprintf(w, "  interrupt: %s\n", answered(&f.File, &next, err))
	for _, name := range []string{"nothing", "good", "other bytes"} {
		seen := headResults(&f.File)[name]
		for _, date := range []time.Time{f.LandBy.Add(-1), f.LandBy} {
			seen.Date = date
			next, err := f.undeleted(seen, now)
			fmt.Fprintf(w, "  undelete, %s, landed %t: %s\n", name, date.Equal(f.LandBy), answered(&f.File, &next, err))
		}
	}
}

func answered(from, to *File, err error) string {
	if err != nil {
		return err.Error()
	}
	return describe(from, to, updated)
}

func describe(from, to *File, what decision) string {
	switch what {
	case unchanged:
		return "-"
	case dropped:
		return "dropped"
	}
	s := fmt.Sprintf("%s, due %s", to.State, since(to.DueAt))
	if !to.DropAt.Equal(from.DropAt) {
		s += ", drop at " + since(to.DropAt)
	}
	if u := usageDelta(from, to); u != (Usage{}) {
		s += ", usage " + added(u)
	}
	return s
}

func added(u Usage) string { return fmt.Sprintf("%+d bytes %+d open", u.Bytes, u.Open) }

func since(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return t.Sub(began).String()
}

// An upload is open while its URLs may be in use, even if the file was deleted.
func TestUsage(t *testing.T) {
	for _, test := range []struct {
		File
		want Usage
	}{
		{File{State: Pending, Promise: Promise{Size: 0}}, Usage{4096, 1}},
		{File{State: Indexed, Promise: Promise{Size: 4097}}, Usage{4097, 0}},
		{File{State: Lost, Promise: Promise{Size: 10}}, Usage{4096, 0}},
		{File{State: Deleted, Promise: Promise{Size: 5000}}, Usage{5000, 0}},
		{File{State: Deleted, WasPending: true, Promise: Promise{Size: 5000}}, Usage{5000, 1}},
		{File{State: Purging, WasPending: true, Promise: Promise{Size: 5000}}, Usage{5000, 0}},
		{File{State: Gone, Promise: Promise{Size: 5000}}, Usage{}},
		{File{State: Expired, Promise: Promise{Size: 5000}}, Usage{}},
	} {
		if got := test.Usage(); got != test.want {
			t.Errorf("%s: %+v, want %+v", test.State, got, test.want)
		}
	}
}
