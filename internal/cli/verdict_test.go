package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/doctor"
	"github.com/pawlhq/pawl/lock"
)

func TestVerdict(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", dir) // for each system its own
	t.Setenv("HOME", dir)
	t.Setenv("LocalAppData", dir)
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
	dir := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", dir)
	t.Setenv("HOME", dir)
	t.Setenv("LocalAppData", dir)
	v, other := verdict{Bucket: "state"}, verdict{Bucket: "other"}
	other.keep(time.Now())
	safe := doctor.Feature{Name: "locks", Safety: doctor.Safe}
	unsafe := doctor.Feature{Name: "locks", Safety: doctor.Unsafe, Detail: "it ignores If-Match"}
	for _, c := range []struct {
		found  doctor.Feature
		check  doctor.Verdict
		known  bool
		unsafe string
	}{
		{unsafe, doctor.Unclear, false, ""},
		{unsafe, doctor.Ignored, true, unsafe.Detail},
		{unsafe, doctor.Unclear, true, unsafe.Detail},
		{safe, doctor.Unclear, true, ""}, // the check was for something else
		{safe, doctor.OK, true, ""},
		{unsafe, doctor.Unclear, false, ""},
		{safe, doctor.OK, true, ""},
		{unsafe, doctor.Failed, true, unsafe.Detail},
	} {
		r := &doctor.Report{Checks: []doctor.Check{{Verdict: c.check}}, Features: []doctor.Feature{c.found}}
		if err := v.renew(r); err != nil {
			t.Error(err)
		}
		if kept, ok := v.known(time.Now()); ok != c.known || ok && kept.Unsafe != c.unsafe {
			t.Errorf("after %+v, %s: %+v, %v", c.found, c.check, kept, ok)
		}
		if _, ok := other.known(time.Now()); !ok {
			t.Error("what was known of another bucket is gone")
		}
	}
}

// TestVerdictThatCannotBeKept is no error.
func TestVerdictThatCannotBeKept(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{file, ""} {
		t.Setenv("XDG_CACHE_HOME", dir)
		t.Setenv("HOME", dir)
		t.Setenv("LocalAppData", dir)
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
		{fmt.Errorf("%w: %w", lock.ErrUnsure, bucket.ErrUnavailable), 74},
		{fmt.Errorf("%w: %w", lock.ErrUnsure, signalled{os.Interrupt}), 74},
		{fmt.Errorf("%w: %w", lock.ErrUnsure, &ended{2, errors.New("exit status 2")}), 74},
		{fmt.Errorf("%w: %w", &lock.HeldError{}, errWaited), 75},
		{fmt.Errorf("%w; %w", lock.ErrLost, errNotStarted), 75},
		{errSilent, 69},
		{fmt.Errorf("%w: %w", bucket.ErrUnavailable, errWaited), 69},
		{errWaited, 75},
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
