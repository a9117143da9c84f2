package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"golang.org/x/sync/errgroup"

	"github.com/pawlhq/pawl/action"
	"github.com/pawlhq/pawl/audit"
	"github.com/pawlhq/pawl/audit/inventory/inventorytest"
	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/internal/traffic"
	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/proof/servertest"
	"github.com/pawlhq/pawl/store/sqlite"
)

var (
	trafficShare = flag.Int("share", 50, "TestTraffic uses one part in this many of the published traffic; 1 means all")
	trafficSeed  = flag.Uint64("traffic-seed", 1, "seed of TestTraffic")
)

const trafficConfig = `
ledger: sqlite:%s
objects: {endpoint: %q, region: %s, path_style: true}
sources:
  - webhook: {listen: "${PAWL_LISTEN}", path: /events, token: Bearer secret}
pipelines:
  - name: load
    match: {bucket: inputs}
    http: {url: %q}
sweep_interval: 200ms
`

// TestTraffic replays the traffic of a published report, with losses and reordering, and then audits. It
// compares the rate and memory with the record store alone.
func TestTraffic(t *testing.T) {
	servertest.Long(t)
	t.Parallel()
	tr := traffic.New(traffic.Published.Divided(*trafficShare), inputs, time.Date(2019, time.May, 1, 0, 0, 0, 0, time.UTC), *trafficSeed)
	t.Logf("repeat with: go test ./proof/e2e -run TestTraffic -share %d -traffic-seed %d", *trafficShare, tr.Seed)
	dir := t.TempDir()
	binary := build(t)
	srv := servertest.S3(t)
	store := newTrafficBucket(t, srv, tr)
	sink := newEffectCounter(t, tr)
	path := filepath.Join(dir, "ledger.db")
	config := filepath.Join(dir, "pawl.yaml")
	if err := os.WriteFile(config, fmt.Appendf(nil, trafficConfig, path, srv.Endpoint, srv.Region, sink.url), 0o600); err != nil {
		t.Fatal(err)
	}
	env := []string{"PAWL_LISTEN=127.0.0.1:0", "AWS_ACCESS_KEY_ID=" + srv.AccessKey, "AWS_SECRET_ACCESS_KEY=" + srv.SecretKey}

	cmd := exec.CommandContext(t.Context(), binary, "replay", "-c", config, writeTraffic(t, dir, tr))
	cmd.Env = append(os.Environ(), env...)
	start := time.Now()
	peak := runMeasured(t, cmd)
	took := time.Since(start)
	sink.check(t, tr, func(o traffic.Object) int { return min(o.Copies, 1) })
	alone := storeAlone(t, path, filepath.Join(dir, "alone.db"))
	t.Logf("%d notifications of %d keys in %.1f s: %.0f keys/s, %.0f MB", tr.Shape.Notifications(), tr.Keys, took.Seconds(), float64(tr.Keys)/took.Seconds(), float64(peak)/1e6)
	t.Logf("SQLite store alone: %.0f keys/s, %.0f MB; the replay has %.2f of its rate and %.1f times its memory",
		alone.rate, alone.mb, float64(tr.Keys)/took.Seconds()/alone.rate, float64(peak)/1e6/alone.mb)
	if mb := float64(peak) / 1e6; mb > replayMB {
		t.Errorf("replay needed %.0f MB: at most %d", mb, replayMB)
	}

	a := auditor{binary, config, env}
	lost := audit.Counts{Listed: int64(tr.Shape.Objects()), Rows: int64(tr.Keys), Inspected: int64(tr.Lost), LostCreations: int64(tr.Lost), Created: int64(tr.Keys)}
	for _, format := range []string{inventorytest.CSV, inventorytest.Parquet} {
		a.wants(t, lost, "--dry-run", "--inventory", writeInventory(t, store, format))
	}
	repaired := lost
	repaired.Repaired = int64(tr.Lost)
	a.wants(t, repaired)

	records, err := sqlite.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	led := ledger.NewRows(records)
	t.Cleanup(func() { _ = led.Close() })
	f := &fleet{binary: binary, dir: dir, config: config, env: env}
	f.start(t, 1)
	eventually(t, 10*time.Minute, func(ctx context.Context) ([]string, error) {
		bad, _, err := unsettled(ctx, led)
		return bad, err
	})
	f.stop(t)
	sink.check(t, tr, func(traffic.Object) int { return 1 })
	a.wants(t, audit.Counts{Listed: lost.Listed, Rows: lost.Listed, Created: lost.Listed})
}

type auditor struct {
	binary, config string
	env            []string
}

// The audit exits with 3 if changes were lost.
func (a auditor) wants(t *testing.T, want audit.Counts, flags ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), a.binary, append([]string{"audit", "-c", a.config, "--json", "--settle-window", "1s"}, flags...)...)
	cmd.Env = append(os.Environ(), a.env...)
	start := time.Now()
	out, err := cmd.Output()
	code := 0
	if want.Found() > 0 {
		code = 3
	}
	if cmd.ProcessState.ExitCode() != code {
		t.Fatalf("pawl audit %q: %v, want exit code %d\n%s", flags, err, code, out)
	}
	var report struct{ Total audit.Counts }
	if err := json.Unmarshal(out, &report); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if report.Total != want {
		t.Errorf("pawl audit %q: %+v, want %+v", flags, report.Total, want)
	}
	t.Logf("pawl audit %q: %.0f objects/s, %d HEAD requests", flags, float64(want.Listed)/time.Since(start).Seconds(), report.Total.Inspected)
}

func writeInventory(t *testing.T, store bucket.Store, format string) string {
	t.Helper()
	rep := inventorytest.New(t, format, inputs, time.Now())
	var rows []inventorytest.Row
	for info, err := range store.List(t.Context(), inputs, "", "") {
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, inventorytest.Row{Bucket: inputs, Key: info.Key, ETag: info.ETag, Size: info.Size, Modified: info.ModTime})
		if len(rows) == 100_000 {
			rep.Add(t, rows)
			rows = rows[:0]
		}
	}
	rep.Add(t, rows)
	return rep.Unpack(t, rep.Files(t))
}

func newTrafficBucket(t *testing.T, srv *servertest.Server, tr *traffic.Traffic) bucket.Store {
	t.Helper()
	client := srv.Client()
	if _, err := client.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: aws.String(inputs)}); err != nil {
		t.Fatal(err)
	}
	g, ctx := errgroup.WithContext(t.Context())
	g.SetLimit(8)
	for o := range tr.Objects() {
		g.Go(func() error {
			_, err := client.PutObject(ctx, &s3.PutObjectInput{Bucket: aws.String(inputs), Key: aws.String(o.Key()), Body: strings.NewReader(o.Content())})
			return err
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	return open(t, srv)
}

func writeTraffic(t *testing.T, dir string, tr *traffic.Traffic) string {
	t.Helper()
	f, err := os.Create(filepath.Join(dir, "notifications.ndjson"))
	if err != nil {
		t.Fatal(err)
	}
	w := bufio.NewWriter(f)
	for n := range tr.Notifications() {
		fmt.Fprintln(w, n.Text())
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return f.Name()
}

type effectCounter struct {
	url string

	mu        sync.Mutex
	effects   []int
	malformed []string
}

func newEffectCounter(t *testing.T, tr *traffic.Traffic) *effectCounter {
	s := &effectCounter{effects: make([]int, tr.Shape.Objects())}
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	s.url = srv.URL
	return s
}

func (s *effectCounter) ServeHTTP(_ http.ResponseWriter, req *http.Request) {
	var facts action.Facts
	err := json.NewDecoder(req.Body).Decode(&facts)
	number := -1
	if _, tail, ok := strings.Cut(facts.Key, " part "); err == nil && ok {
		_, err = fmt.Sscanf(tail, "%d.json", &number)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil || number < 0 || number >= len(s.effects) {
		s.malformed = append(s.malformed, fmt.Sprintf("%q: %v", facts.Key, err))
		return
	}
	s.effects[number]++
}

func (s *effectCounter) check(t *testing.T, tr *traffic.Traffic, want func(traffic.Object) int) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	wrong := s.malformed
	for o := range tr.Objects() {
		if got := s.effects[o.Number]; got != want(o) {
			wrong = append(wrong, fmt.Sprintf("%s, notified %d times, has %d effects, want %d", o.Key(), o.Copies, got, want(o)))
		}
	}
	if len(wrong) > 0 {
		t.Fatalf("%d objects are wrong: %s", len(wrong), strings.Join(wrong[:min(5, len(wrong))], "\n"))
	}
}

type storeMetrics struct{ rate, mb float64 } // keys per second, peak memory

func storeAlone(t *testing.T, from, to string) storeMetrics {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	report := to + ".rate"
	cmd.Env = append(os.Environ(), aloneVar+"="+strings.Join([]string{from, to, report}, "\n"))
	peak := runMeasured(t, cmd)
	text, err := os.ReadFile(report)
	if err != nil {
		t.Fatal(err)
	}
	f := storeMetrics{mb: float64(peak) / 1e6}
	if _, err := fmt.Sscan(string(text), &f.rate); err != nil {
		t.Fatal(err)
	}
	return f
}

const aloneVar = "PAWL_E2E_STORE_ALONE"

func TestMain(m *testing.M) {
	if paths := os.Getenv(aloneVar); paths != "" {
		if err := rewrite(context.Background(), strings.Split(paths, "\n")); err != nil {
			log.Fatal(err)
		}
		return
	}
	if text := os.Getenv(auditorVar); text != "" {
		if err := runAuditor(context.Background(), text); err != nil {
			log.Fatal(err)
		}
		return
	}
	if os.Getenv(beginVar) != "" {
		if err := beginFiles(context.Background()); err != nil {
			log.Fatal(err)
		}
		return
	}
	// DynamoDB Local accepts any credentials.
	_ = os.Setenv("AWS_ACCESS_KEY_ID", "pawl")
	_ = os.Setenv("AWS_SECRET_ACCESS_KEY", "pawl")
	defer func() { removeBuilt() }()
	m.Run()
}

// rewrite swaps each row twice, as a claim and a completion do.
func rewrite(ctx context.Context, paths []string) error {
	records, err := sqlite.Open(ctx, paths[0])
	if err != nil {
		return err
	}
	from := ledger.NewRows(records)
	defer from.Close()
	records, err = sqlite.Open(ctx, paths[1])
	if err != nil {
		return err
	}
	to := ledger.NewRows(records)
	defer to.Close()
	var took time.Duration
	var batch []ledger.Row
	rows := 0
	write := func() error {
		start := time.Now()
		defer func() { took += time.Since(start) }()
		rows += len(batch)
		return swapTwice(ctx, to, batch)
	}
	for row, err := range from.Scan(ctx, ledger.Range{}) {
		if err != nil {
			return err
		}
		if batch = append(batch, row); len(batch) == 500 {
			if err := write(); err != nil {
				return err
			}
			batch = batch[:0]
		}
	}
	if err := write(); err != nil {
		return err
	}
	return os.WriteFile(paths[2], fmt.Appendln(nil, float64(rows)/took.Seconds()), 0o600)
}

func swapTwice(ctx context.Context, to ledger.Store, rows []ledger.Row) error {
	first, second := make([]ledger.Change, len(rows)), make([]ledger.Change, len(rows))
	for i := range rows {
		claimed := rows[i]
		claimed.Nonce[0]++
		first[i] = ledger.Change{Key: claimed.RowKey, Row: &claimed}
		second[i] = ledger.Change{Key: claimed.RowKey, Expect: claimed.Nonce, Row: &rows[i]}
	}
	for _, changes := range [][]ledger.Change{first, second} {
		out, err := to.Swap(ctx, changes)
		if err != nil {
			return err
		}
		for _, o := range out {
			if !o.Applied {
				return fmt.Errorf("refused: %+v", o)
			}
		}
	}
	return nil
}
