package pipelinecmd

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/cmd/pawl/app"
	"github.com/pawlhq/pawl/cmd/pawl/config"
	"github.com/pawlhq/pawl/cmd/pawl/parts"
	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/metrics/alerts"
	"github.com/pawlhq/pawl/metrics/prom"
	"github.com/pawlhq/pawl/proof/servertest"
	"github.com/pawlhq/pawl/store"
	"github.com/pawlhq/pawl/store/memory"
)

// countedStore counts the records that requests read.
type countedStore struct {
	store.Store
	read    int
	failure error // of writes
}

func (s *countedStore) Swap(ctx context.Context, changes []store.Change) ([]store.Outcome, error) {
	if s.failure != nil {
		return nil, s.failure
	}
	return s.Store.Swap(ctx, changes)
}

func (s *countedStore) Due(ctx context.Context, r store.DueRange) ([]store.Record, error) {
	all, err := s.Store.Due(ctx, r)
	s.read += len(all)
	return all, err
}

func (s *countedStore) Scan(ctx context.Context, r store.Range) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		for record, err := range s.Store.Scan(ctx, r) {
			s.read++
			if !yield(record, err) {
				return
			}
		}
	}
}

type dashboardServer struct {
	*httptest.Server
	t       *testing.T
	records *countedStore
	rows    *ledger.Rows
	log     bytes.Buffer
	mon     *monitor
}

func newDashboardServer(t *testing.T, records store.Store, admin string) *dashboardServer {
	t.Helper()
	c, err := parts.Table.Parse("pawl.yaml", fmt.Appendf(nil, `
ledger: memory
retry: {attempts: 3}
pipelines: [{name: p, match: {bucket: b}, order: event, http: {url: "http://user:geheim1@receiver.test/?key=geheim2", secret: geheim3}}]
sources: [{webhook: {listen: "127.0.0.1:0", token: geheim4}}]
archives: [{name: a, kinesis: {stream: s}, to: "s3://b/a/"}]
%s`, admin), func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	s := &dashboardServer{t: t, records: &countedStore{Store: records}}
	s.rows = ledger.NewRows(s.records)
	m := &app.Runtime{Config: c, Ledger: s.records, Log: slog.New(slog.NewTextHandler(&s.log, nil))}
	if m.Objects, err = app.Objects(t.Context(), &config.Config{File: config.File{Objects: config.Objects{Endpoint: "http://127.0.0.1:9", Region: "x"}}}); err != nil {
		t.Fatal(err)
	}
	m.Parts.Retry.Attempts = 3
	m.Parts.Pipelines = []pawl.Pipeline{{Name: "p", Match: pawl.Match{Bucket: "b"}, To: &pawl.Output{Bucket: "out", Prefix: "o/"}}}
	s.mon = &monitor{m: m, Metrics: prom.New(prom.Config{Pipelines: []string{"p"}})}
	if s.mon.alerts, err = alerts.New(alerts.Config{URL: "http://receiver.test/geheim5?geheim6", Secret: servertest.AlertsSecret}); err != nil {
		t.Fatal(err)
	}
	s.Server = httptest.NewServer(s.mon.dashboard())
	t.Cleanup(s.Close)
	return s
}

// add writes rows in the states of the ledger.
func (s *dashboardServer) add(keys ...string) {
	s.t.Helper()
	now, p := time.Now().UTC().Add(-time.Hour), ledger.DefaultPolicy()
	for chunk := range slices.Chunk(keys, 500) {
		var changes []ledger.Change
		for _, key := range chunk {
			r := ledger.Row{RowKey: ledger.RowKey{Pipeline: "p", Bucket: "b", Key: key}}
			r, _ = r.Observe(&event.Event{Object: r.Object(), Kind: event.Created, Time: now}, false, now)
			if state, _, _ := strings.Cut(key, "/"); state != "pending" {
				claimed, a, _ := r.Claim("host<i>", &p, now)
				switch r = claimed; state {
				case "settled":
					r, _ = r.Complete(&a, &ledger.Ending{}, true, &p, now)
				case "failed":
					r, _ = r.Fail(&a, &ledger.Ending{}, &ledger.Failure{Message: "full\x1b[31m"}, 0, &p, now)
				case "stuck":
				default:
					r, _ = r.Fail(&a, &ledger.Ending{}, &ledger.Failure{Message: "<b>No & no</b>", Permanent: true}, 0, &p, now)
				}
			}
			r.Nonce = store.NewNonce()
			changes = append(changes, ledger.Change{Key: r.RowKey, Row: &r})
		}
		if _, err := s.rows.Swap(s.t.Context(), changes); err != nil {
			s.t.Fatal(err)
		}
	}
}

func (s *dashboardServer) do(method, path string, header ...string) (int, string) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.URL+path, nil)
	if method == http.MethodPost {
		at, form, _ := strings.Cut(path, " ")
		req, err = http.NewRequestWithContext(s.t.Context(), method, s.URL+at, strings.NewReader(form))
	}
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

const (
	hostileKey = "dead/<script>\"'&\x00\x1b\n\u202e{{.}}\xff"
	objectOf   = "/object?pipeline=p&bucket=b&key="
)

func TestDashboardShowsHostileTextAsText(t *testing.T) {
	s := newDashboardServer(t, memory.New(), "")
	s.add(hostileKey, "failed/1", "settled/1", "pending/1", "stuck/1")
	s.mon.Observe(pawl.Notice{Kind: engine.Committed, Key: ledger.RowKey{Pipeline: "p"}, Behind: 1500 * time.Millisecond})
	forbidden := regexp.MustCompile("<script>|<b>No|<i>|geheim|[\x00-\x09\x0b-\x1f\x7f\u202e]| style=| on[a-z]+=|https?://[^1]")
	for path, want := range map[string]string{
		"/": `state=stuck">1<`, "/sources": "webhook", "/audits": "none", "/configuration": "<td>retry.attempts</td><td>3</td>",
		"/configuration?": "<td>sources[0].silent_after</td><td>never</td>", "/configuration?1": "<td>retry.max</td><td>5m0s</td>",
		"/configuration?2": "<td>alerts.url</td><td>receiver.test</td>", "/configuration?3": "<td>archives[0]</td><td>a: s to s3://b/a/</td>",
		"/objects":                             `"bad">dead</td>`,
		"/objects?state=dead&error=NO+%26":     "1 rows shown, 5 examined",
		"/objects?state=failed&pipeline=p":     "1 rows shown, 3 examined", // the due rows
		"/objects?prefix=s3://b/sett":          "1 rows shown, 1 examined",
		"/objects?prefix=%3Cscript%3E%00":      "0 rows shown",
		objectOf + url.QueryEscape(hostileKey): "s3://out/o/dead/",
		objectOf + "stuck/1":                   "host&lt;i&gt;",
		objectOf + "failed/1":                  "a worker starts an attempt",
	} {
		code, page := s.do(http.MethodGet, path)
		if code != 200 || !strings.Contains(page, want) || !strings.Contains(page, "Rates are this process's; rows are the ledger's") {
			t.Errorf("%s: %d, want %q in\n%s", path, code, want, page)
		}
		if bad := forbidden.FindString(page); bad != "" {
			t.Errorf("%s contains %q:\n%s", path, bad, page)
		}
	}
	if _, page := s.do(http.MethodGet, "/"); strings.Count(page, "1.5s") != 2 {
		t.Errorf("the convergence is missing:\n%s", page)
	}
}

func TestDashboardRejectsBadRequests(t *testing.T) {
	s := newDashboardServer(t, memory.New(), "")
	s.add("dead/1")
	long := strings.Repeat("x", 3000)
	for path, want := range map[string]struct {
		code int
		text string
	}{
		"/objects?after=forged":              {400, "remove it to start"},
		"/objects?after=" + long:             {400, "remove it to start"},
		"/objects?after=AAAAAAAAYnVja2V0PWI": {400, "remove it to start"},
		"/objects?state=happy":               {400, "is not a state"},
		"/objects?pipeline=../x":             {400, "is not the name"},
		"/objects?error=" + long:             {400, "longer than"},
		"/objects?pipeline=other":            {200, "0 rows shown"},
		"/object?pipeline=p&bucket=b":        {400, "needs pipeline, bucket and key"},
		objectOf + "none":                    {404, "no row"},
		"/objects/redrive":                   {403, "read-only"},
		"/nowhere":                           {404, "not found"},
	} {
		if code, page := s.do(http.MethodGet, path); code != want.code || !strings.Contains(page, want.text) {
			t.Errorf("%.60s: %d, want %v in\n%s", path, code, want, page)
		}
	}
	for _, path := range []string{"/objects/redrive?state=dead", objectOf + "dead/1 action=force"} {
		if code, page := s.do(http.MethodPost, path); code != 403 || !strings.Contains(page, "set admin.token") {
			t.Errorf("%s: %d\n%s", path, code, page)
		}
	}
	if code, _ := s.do(http.MethodGet, "/", "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors"); code != 403 {
		t.Errorf("a request of another site: %d", code)
	}
}

func TestDashboardPagesAreComplete(t *testing.T) {
	s := newDashboardServer(t, memory.New(), "")
	var keys []string
	for i := range 1300 {
		state := "settled"
		if i%3 == 0 {
			state = "failed"
		} else if i%3 == 1 {
			state = "dead"
		}
		keys = append(keys, fmt.Sprintf("%s/%d", state, i))
	}
	s.add(keys...)
	row, next := regexp.MustCompile(`<a href="(/object\?[^"]+)"`), regexp.MustCompile(`main" href="([^"]+)">Continue`)
	for filter, want := range map[string]int{
		"": 1300, "?state=failed": 434, "?state=failed&pipeline=p": 434, "?prefix=failed/1": 136, "?error=FULL": 434, "?state=dead": 433, "?state=dead&pipeline=p": 433,
	} {
		seen := map[string]bool{}
		for path := "/objects" + filter; path != ""; {
			s.records.read = 0
			_, page := s.do(http.MethodGet, path)
			if s.records.read > 1000+3 { // the names of pipelines come first
				t.Fatalf("%s reads %d records", path, s.records.read)
			}
			for _, m := range row.FindAllStringSubmatch(page, -1) {
				if seen[m[1]] {
					t.Fatalf("%s: %s is shown twice", path, m[1])
				}
				seen[m[1]] = true
			}
			path = ""
			if m := next.FindStringSubmatch(page); m != nil {
				path = strings.ReplaceAll(m[1], "&amp;", "&")
			}
		}
		if len(seen) != want {
			t.Errorf("%q: %d rows, want %d", filter, len(seen), want)
		}
	}
}

func TestDashboardRedrives(t *testing.T) {
	s := newDashboardServer(t, memory.New(), "admin: {token: hush}")
	s.add("dead/1", "dead/2", "failed/1", "other", "settled/1", "settled/2")
	state := func(key string) ledger.State {
		rows, err := s.rows.Load(t.Context(), []ledger.RowKey{{Pipeline: "p", Bucket: "b", Key: key}})
		if err != nil || len(rows) != 1 {
			t.Fatal(rows, err)
		}
		return rows[0].State(time.Now())
	}
	for _, from := range [][]string{{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}, {"Origin", "http://evil.test"}} {
		for _, path := range []string{"/objects/redrive", objectOf + "dead/1 action=force"} {
			if code, _ := s.do(http.MethodPost, path, append(from, "Sec-Fetch-Mode", "navigate")...); code != 403 || state("dead/1") != ledger.StateDead {
				t.Fatalf("%s from %v: %d", path, from, code)
			}
		}
	}
	const dead, forced = "/objects/redrive?prefix=dead&state=dead", "/object/force?pipeline=p&bucket=b&key=settled/1"
	seen, hidden := "", regexp.MustCompile(`name="seen" value="([0-9a-f]+)"`)
	for _, step := range []struct {
		method, path string
		code         int
		want         string
	}{
		{"GET", "/objects?prefix=dead&state=dead", 200, `href="/objects/redrive?prefix=dead&amp;state=dead"`},
		{"POST", dead, 409, "changed since: 2 rows now"}, // without a confirmation
		{"GET", dead, 200, "Redrive 2 rows</button>"},
		{"ADD", "dead/3", 0, ""},
		{"POST", dead, 409, "changed since: 3 rows now"},
		{"POST", dead, 200, "redrove 3 rows"},
		{"POST", dead, 409, "changed since: 0 rows now"}, // a reload
		{"GET", objectOf + "failed/1", 200, "Redrive</button>"},
		{"POST", objectOf + "failed/1 action=redrive", 200, "redrove 1 row"},
		{"POST", objectOf + "failed/1 action=redrive", 409, "changed since: it is pending now"},
		{"GET", objectOf + "settled/1", 200, "Force:"},
		{"POST", objectOf + "settled/1 action=redrive", 200, "redrove 0 rows; skipped 1"},
		{"POST", objectOf + "settled/2 action=force", 409, "Force</button>"},
		{"POST", objectOf + "settled/2 action=drop", 400, "want the action"},
		{"GET", forced, 200, "Force</button>"},
		{"POST", objectOf + "settled/1 action=force", 200, "redrove 1 row"},
		{"POST", objectOf + "settled/1 action=force", 409, "changed since: it is pending now"},
		{"GET", "/objects/redrive", 200, "Redrive 1 rows</button>"},
		{"FAIL", "", 0, ""},
		{"POST", "/objects/redrive", 503, "redrove 0 rows, then the redrive failed: "},
	} {
		switch step.method {
		case "ADD":
			s.add(step.path)
			continue
		case "FAIL":
			s.records.failure = ledger.ErrUnusable
			continue
		case "POST":
			step.path += map[bool]string{true: "&", false: " "}[strings.Contains(step.path, " ")] + "seen=" + seen
		}
		code, page := s.do(step.method, step.path, "Sec-Fetch-Site", "same-origin")
		if code != step.code || !strings.Contains(page, step.want) {
			t.Errorf("%s %s: %d, want %d %q in\n%s", step.method, step.path, code, step.code, step.want, page)
		}
		if m := hidden.FindStringSubmatch(page); m != nil {
			seen = m[1]
		}
	}
	s.records.failure = nil
	for key, want := range map[string]ledger.State{
		"dead/1": ledger.StatePending, "dead/2": ledger.StatePending, "failed/1": ledger.StatePending,
		"settled/1": ledger.StatePending, "settled/2": ledger.StateSettled,
	} {
		if got := state(key); got != want {
			t.Errorf("%s is %s, want %s", key, got, want)
		}
	}
	if log := s.log.String(); strings.Count(log, "redrive from the dashboard") != 4 || !strings.Contains(log, `result="redrove 3 rows"`) ||
		!strings.Contains(log, `"redrive failed"`) || strings.Contains(log, "cannot read") {
		t.Errorf("the log is\n%s", log)
	}
}

func TestRedriveCommandQuotes(t *testing.T) {
	s := newDashboardServer(t, memory.New(), "")
	var keys []string
	for i := range 201 {
		keys = append(keys, fmt.Sprintf("dead/it's %d", i))
	}
	s.add(keys...)
	want := `pawl redrive --all --state dead --prefix &#39;dead/it&#39;\&#39;&#39;s&#39;`
	if _, page := s.do(http.MethodGet, "/objects?state=dead&prefix=dead/it%27s"); !strings.Contains(page, want) {
		t.Errorf("want %s in\n%s", want, page)
	}
}
