package doctorcmd

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl/bucket/membucket"
	"github.com/pawlhq/pawl/cmd/pawl/app"
	"github.com/pawlhq/pawl/doctor"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/internal/fakes3"
)

// cacheIn works on every operating system.
func cacheIn(t *testing.T, dir string) {
	t.Helper()
	for _, name := range []string{"XDG_CACHE_HOME", "HOME", "LocalAppData"} {
		t.Setenv(name, dir)
	}
}

func TestStoreCheckExpires(t *testing.T) {
	cacheIn(t, t.TempDir())
	now := time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	c := storeCheck{"http://127.0.0.1:9000", "state"}
	if _, _, fit := c.load(useLocks, now); fit {
		t.Error("a check exists before the first save")
	}
	c.save(useLocks, "", now)
	name, err := c.file(useLocks)
	if err != nil {
		t.Fatal(err)
	}
	for age, want := range map[time.Duration]bool{
		-time.Second: false, 0: true, checkMaxAge - 1: true, checkMaxAge: false,
	} {
		if _, _, got := c.load(useLocks, now.Add(age)); got != want {
			t.Errorf("suitable after %v: %v, want %v", age, got, want)
		}
	}
	for _, other := range []storeCheck{{"", "state"}, {c.endpoint, "other"}} {
		if _, _, fit := other.load(useLocks, now); fit {
			t.Errorf("%+v is known", other)
		}
	}
	if _, _, fit := c.load(useListings, now); fit {
		t.Error("a check of listings exists")
	}
	files, err := filepath.Glob(filepath.Join(filepath.Dir(name), "*"))
	if err != nil || len(files) != 1 {
		t.Errorf("the folder has %q, %v", files, err)
	}
	for text, want := range map[string]struct {
		why string
		fit bool
	}{
		"":                                 {},
		"\n":                               {},
		"2026-05-04T03:02:01Z":             {}, // incomplete
		"2026-05-04T03:02:01Z whole-re":    {},
		"yesterday\n":                      {},
		`{"bucket":"state"}` + "\n":        {},
		"2026-05-04T03:02:01Z\n":           {"", true},
		"2026-05-04T03:02:01Z whole r\n":   {"whole r", false},
		"2020-05-04T03:02:01Z whole r\n":   {"whole r", false}, // rejections do not expire
		"2020-05-04T03:02:01Z\n":           {},
		"2026-05-04T03:02:01Z\nand more\n": {},
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, why, fit := c.load(useLocks, now); why != want.why || fit != want.fit {
			t.Errorf("with the check %q the store is suitable: %v, %q", text, fit, why)
		}
	}
}

func TestStoreCheckUpdates(t *testing.T) {
	cacheIn(t, t.TempDir())
	c, other := storeCheck{"", "state"}, storeCheck{"", "other"}
	other.save(useLocks, "", time.Now())
	const year = 365 * 24 * time.Hour
	whole := examined(t)
	for _, step := range []struct {
		check   string
		verdict doctor.Verdict
		fit     bool
		unsafe  string
	}{
		{"create-once", doctor.Unclear, false, ""},
		{"create-once", doctor.Ignored, false, "it ignores If-None-Match (create-once)"},
		{"create-once", doctor.Unclear, false, "it ignores If-None-Match (create-once)"},
		{"create-once", doctor.OK, true, ""},
		{"delete-match", doctor.Unclear, true, ""}, // which locks do not need
		{"create-once", doctor.Unclear, false, ""},
		{"delete-match", doctor.Ignored, true, ""},
		{"read-after-write", doctor.Failed, false, "read-after-write failed"},
	} {
		r := &doctor.Report{Checks: slices.Clone(whole)}
		i := slices.IndexFunc(r.Checks, func(check doctor.Check) bool { return check.Name == step.check })
		r.Checks[i].Verdict = step.verdict
		if err := c.update(r); err != nil {
			t.Error(err)
		}
		if _, why, fit := c.load(useLocks, time.Now()); fit != step.fit || why != step.unsafe {
			t.Errorf("after %s %s, the store is suitable: %v, %q", step.check, step.verdict, fit, why)
		}
		if _, why, fit := c.load(useLocks, time.Now().Add(year)); fit || why != step.unsafe {
			t.Errorf("a year after %s %s, the store is suitable: %v, %q", step.check, step.verdict, fit, why)
		}
		if _, _, fit := other.load(useLocks, time.Now()); !fit {
			t.Error("the stored check of another bucket is missing")
		}
	}
}

func TestListingRefusalOutlastsLockChecks(t *testing.T) {
	cacheIn(t, t.TempDir())
	storeCheck := storeCheck{"", "state"}
	whole := examined(t)
	for _, c := range []struct {
		create, list doctor.Verdict
		known        bool
		alone, both  string
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
		if err := storeCheck.update(r); err != nil {
			t.Error(err)
		}
		if _, why, fit := storeCheck.load(useLocks, time.Now()); (fit || why != "") != c.known {
			t.Errorf("after %+v: %v, %q", c, fit, why)
		}
		for _, use := range []struct {
			why, listing string
		}{{c.alone, ""}, {c.both, doctor.SharedLocks}} {
			_, err := storeCheck.allows("", use.listing)
			if errors.Is(err, ErrUnsafe) != (use.why != "") || err != nil && !strings.Contains(err.Error(), use.why) {
				t.Errorf("after %+v, for %q: %v", c, use.listing, err)
			}
		}
	}
}

func TestOldProofIsRepeated(t *testing.T) {
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
	long := time.Now().Add(-2 * checkMaxAge).UTC()
	c := storeCheck{srv.URL, "state"}
	c.save(useLocks, "", long)
	c.save(useListings, "list-after-write failed", long)
	a, o := &app.App{ConfigFile: "pawl.yaml"}, event.Object{Bucket: "state", Key: "a"}
	refused := func() {
		t.Helper()
		_, err := OpenProven(t.Context(), a, srv.URL, o, doctor.SharedLocks)
		if !errors.Is(err, ErrUnsafe) || !strings.Contains(err.Error(), "list-after-write failed (found by \"pawl doctor\" on "+long.Format(time.DateOnly)) {
			t.Error(err)
		}
	}
	refused()
	if _, _, fit := c.load(useLocks, time.Now()); fit {
		t.Error("the expired proof still counts")
	}
	if _, err := OpenProven(t.Context(), a, srv.URL, o, ""); err != nil {
		t.Error(err)
	}
	if _, _, fit := c.load(useLocks, time.Now()); !fit {
		t.Error("the store was not proved again")
	}
	refused()
}

func examined(t *testing.T) []doctor.Check {
	t.Helper()
	r, err := doctor.Examine(t.Context(), membucket.New(time.Now, []string{"state"}), "state", "", doctor.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return r.Checks
}

func TestUnwritableCacheIsNotAnError(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{file, ""} {
		cacheIn(t, dir)
		c := storeCheck{"", "state"}
		c.save(useLocks, "", time.Now())
		if _, _, fit := c.load(useLocks, time.Now()); fit {
			t.Errorf("the check was saved in %q", dir)
		}
	}
}
