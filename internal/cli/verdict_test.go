package cli

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/bucket/membucket"
	"github.com/pawlhq/pawl/doctor"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/internal/fakes3"
	"github.com/pawlhq/pawl/lock"
)

// cacheIn sets the user's cache folder, for each system by its own name.
func cacheIn(t *testing.T, dir string) {
	t.Helper()
	for _, name := range []string{"XDG_CACHE_HOME", "HOME", "LocalAppData"} {
		t.Setenv(name, dir)
	}
}

func TestVerdict(t *testing.T) {
	cacheIn(t, t.TempDir())
	now := time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	v := verdict{Endpoint: "http://127.0.0.1:9000", Bucket: "state"}
	if _, ok := v.known(now); ok {
		t.Error("it is known before it is kept")
	}
	v.keep(now)
	name, err := v.file()
	if err != nil {
		t.Fatal(err)
	}
	for age, want := range map[time.Duration]bool{
		-time.Second: false, 0: true, verdictAge - 1: true, verdictAge: false,
	} {
		if _, got := v.known(now.Add(age)); got != want {
			t.Errorf("known after %v: %v, want %v", age, got, want)
		}
	}
	for _, other := range []verdict{{Bucket: "state"}, {Endpoint: v.Endpoint, Bucket: "other"}} {
		if _, ok := other.known(now); ok {
			t.Errorf("%+v is known", other)
		}
	}
	files, err := filepath.Glob(filepath.Join(filepath.Dir(name), "*"))
	if err != nil || len(files) != 1 {
		t.Errorf("the folder has %q, %v", files, err)
	}
	for _, text := range []string{"", "{", `{"bucket":"other","proved":"2026-05-04T03:02:01Z"}`} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, ok := v.known(now); ok {
			t.Errorf("known by %q", text)
		}
	}
}

func TestVerdictRenewed(t *testing.T) {
	cacheIn(t, t.TempDir())
	v, other := verdict{Bucket: "state"}, verdict{Bucket: "other"}
	other.keep(time.Now())
	const year = 365 * 24 * time.Hour
	whole := examined(t)
	for _, c := range []struct {
		check   string
		verdict doctor.Verdict
		known   bool
		later   bool // known a year later
		unsafe  string
	}{
		{"create-once", doctor.Unclear, false, false, ""},
		{"create-once", doctor.Ignored, true, true, "it ignores If-None-Match (create-once)"},
		{"create-once", doctor.Unclear, true, true, "it ignores If-None-Match (create-once)"},
		{"create-once", doctor.OK, true, false, ""},
		{"delete-match", doctor.Unclear, true, false, ""}, // which locks do not need
		{"create-once", doctor.Unclear, false, false, ""},
		{"delete-match", doctor.Ignored, true, false, ""},
		{"read-after-write", doctor.Failed, true, true, "read-after-write failed"},
	} {
		r := &doctor.Report{Checks: slices.Clone(whole)}
		i := slices.IndexFunc(r.Checks, func(check doctor.Check) bool { return check.Name == c.check })
		r.Checks[i].Verdict = c.verdict
		if err := v.renew(r); err != nil {
			t.Error(err)
		}
		if kept, ok := v.known(time.Now()); ok != c.known || ok && kept.Unsafe != c.unsafe {
			t.Errorf("after %s %s: %+v, %v", c.check, c.verdict, kept, ok)
		}
		if _, ok := v.known(time.Now().Add(year)); ok != c.later {
			t.Errorf("a year after %s %s it is known: %v", c.check, c.verdict, ok)
		}
		if _, ok := other.known(time.Now()); !ok {
			t.Error("what was known of another bucket is gone")
		}
	}
}

// TestVerdictOfListings outlasts the proofs of the rest, until doctor finds otherwise.
func TestVerdictOfListings(t *testing.T) {
	cacheIn(t, t.TempDir())
	v := verdict{Bucket: "state"}
	whole := examined(t)
	for _, c := range []struct {
		create, list doctor.Verdict
		known        bool
		alone, both  string // why it is refused
	}{
		{doctor.OK, doctor.OK, true, "", ""},
		{doctor.OK, doctor.Failed, true, "", "list-after-write failed"},
		{doctor.OK, doctor.Unclear, true, "", "list-after-write failed"},
		{doctor.Unclear, doctor.Unclear, false, "", "list-after-write failed"},
		{doctor.OK, doctor.OK, true, "", ""},
		{doctor.OK, doctor.Unclear, true, "", ""},
		{doctor.Unclear, doctor.Failed, false, "", "list-after-write failed"},
		{doctor.Ignored, doctor.Unclear, true, "it ignores If-None-Match", "it ignores If-None-Match"},
		{doctor.OK, doctor.Unclear, true, "", "list-after-write failed"},
		{doctor.Ignored, doctor.OK, true, "it ignores If-None-Match", "it ignores If-None-Match"},
		{doctor.OK, doctor.Unclear, true, "", ""},
	} {
		r := &doctor.Report{Checks: slices.Clone(whole)}
		for i := range r.Checks {
			switch check := &r.Checks[i]; check.Name {
			case "create-once":
				check.Verdict = c.create
			case "list-after-write":
				check.Verdict = c.list
			}
		}
		if err := v.renew(r); err != nil {
			t.Error(err)
		}
		kept, ok := v.known(time.Now())
		if ok != c.known || kept.Listings != nil && kept.Listings.Found.IsZero() {
			t.Errorf("after %+v: %+v, %v", c, kept, ok)
		}
		for _, use := range []struct {
			why, listing string
		}{{c.alone, ""}, {c.both, doctor.FairLocks}} {
			err := kept.refuse("", use.listing)
			if errors.Is(err, errUnsafe) != (use.why != "") || err != nil && !strings.Contains(err.Error(), use.why) {
				t.Errorf("after %+v, for %q: %v", c, use.listing, err)
			}
		}
	}
}

// TestVerdictProvedAgain proves a store whose proof is too old, and whose listings
// were found wanting.
func TestVerdictProvedAgain(t *testing.T) {
	srv := httptest.NewServer(fakes3.New())
	t.Cleanup(srv.Close)
	for name, value := range map[string]string{"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_REGION": "us-east-1"} {
		t.Setenv(name, value)
	}
	cacheIn(t, t.TempDir())
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, srv.URL+"/state", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	long := time.Now().Add(-2 * verdictAge).UTC()
	v := verdict{Endpoint: srv.URL, Bucket: "state", Listings: &finding{"list-after-write failed", long}}
	v.keep(long)
	a, o := &app{configFile: "pawl.yaml"}, event.Object{Bucket: "state", Key: "a"}
	refused := func() {
		t.Helper()
		_, err := a.proved(t.Context(), srv.URL, o, doctor.SharedLocks)
		if !errors.Is(err, errUnsafe) || !strings.Contains(err.Error(), "list-after-write failed, as \"pawl doctor\" found on "+long.Format(time.DateOnly)) {
			t.Error(err)
		}
	}
	refused()
	if _, ok := v.known(time.Now()); ok {
		t.Error("it is believed still")
	}
	if _, err := a.proved(t.Context(), srv.URL, o, ""); err != nil {
		t.Error(err)
	}
	if _, ok := v.known(time.Now()); !ok {
		t.Error("it was not proved again")
	}
	refused()
}

// TestVerdictOfAnOlderVersion reads what was kept without a word of listings.
func TestVerdictOfAnOlderVersion(t *testing.T) {
	cacheIn(t, t.TempDir())
	v := verdict{Bucket: "state"}
	v.keep(time.Now()) // makes the folder
	name, err := v.file()
	if err != nil {
		t.Fatal(err)
	}
	for unsafe, more := range map[string]string{"": "", "whole-reads failed": `,"unsafe":"whole-reads failed"`} {
		text := `{"bucket":"state","proved":"2026-05-04T03:02:01Z"` + more + "}\n"
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		kept, ok := v.known(time.Date(2026, 5, 5, 0, 0, 0, 0, time.UTC))
		err := kept.refuse("", doctor.SharedLocks)
		if !ok || kept.Unsafe != unsafe || (err != nil) != (unsafe != "") {
			t.Errorf("%s: %+v, %v, %v", text, kept, ok, err)
		}
	}
}

// examined are the checks of a store that honours all.
func examined(t *testing.T) []doctor.Check {
	t.Helper()
	r, err := doctor.Examine(t.Context(), membucket.New(time.Now, []string{"state"}), "state", "", doctor.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return r.Checks
}

// TestVerdictThatCannotBeKept is no error.
func TestVerdictThatCannotBeKept(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{file, ""} {
		cacheIn(t, dir)
		v := verdict{Bucket: "state"}
		v.keep(time.Now())
		if _, ok := v.known(time.Now()); ok {
			t.Errorf("it was kept in %q", dir)
		}
	}
}

func TestSysexit(t *testing.T) {
	for _, c := range []struct {
		err  error
		code int
	}{
		{&failure{code: exitUsage}, exitUsage}, // a command's own code
		{usage("wrong"), 64},
		{misconfigured(errors.New("wrong")), 64},
		{failed(lock.ErrConfig, ""), 1},
		{errors.New("something else"), 1},
		{bucket.ErrNotFound, 1},
		{bucket.ErrDenied, 64},
		{bucket.ErrUnavailable, 69},
		{bucket.ErrUnclear, 69},
		{bucket.ErrConflict, 69},
		{fmt.Errorf("%w: %w", lock.ErrUnsure, bucket.ErrUnavailable), 74},
		{fmt.Errorf("%w: %w", lock.ErrUnsure, signalled{os.Interrupt}), 74},
		{fmt.Errorf("%w: %w", lock.ErrUnsure, &ended{2, errors.New("exit status 2")}), 74},
		{fmt.Errorf("%w: %w", &lock.HeldError{}, errWaited), 75},
		{fmt.Errorf("%w; %w", lock.ErrLost, errNotStarted), 75},
		{errSilent, 69},
		{fmt.Errorf("%w: %w", bucket.ErrUnavailable, errWaited), 69},
		{errWaited, 69}, // nobody was seen to hold it
		{fmt.Errorf("%w; %w", errWaited, errNotStarted), 75},
		{lock.ErrContended, 75},
		{lock.ErrLost, 76},
		{lock.ErrFenced, 76},
		{fmt.Errorf("%w: %w", &lock.HeldError{}, signalled{os.Interrupt}), 130},
		{&ended{2, errors.New("exit status 2")}, 2},
	} {
		if got := classify(sysexit(c.err), true).code; got != c.code {
			t.Errorf("%v: exit code %d, want %d", c.err, got, c.code)
		}
	}
	if sysexit(nil) != nil {
		t.Error("nothing is an error")
	}
}
