package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl/internal/servertest"
	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/ledger/sqliteledger"
)

const killConfig = `
ledger: sqlite:%s
objects: {endpoint: %q, region: %s, path_style: true}
sources:
  - webhook: {listen: %q, path: /events, token: "Bearer ${PAWL_WEBHOOK_TOKEN}"}
pipelines:
  - name: upper
    match: {bucket: inputs}
    exec: {command: [tr, a-z, A-Z], to: s3://outputs/up/}
lease: {ttl: 1s, skew: 300ms, horizon: 2s}
retry: {attempts: 50, base: 50ms, max: 1s}
sweep: 200ms
`

// TestKills ends the worker with SIGKILL at random moments while objects
// change. At rest every output is right, every row settled, and no message was
// acknowledged and forgotten: nothing is offered again once it was acknowledged,
// and nothing looks at the bucket afterwards.
func TestKills(t *testing.T) {
	const objects, kills = 500, 50
	seed := rand.Uint64()
	if s := os.Getenv("PAWL_SEED"); s != "" {
		if _, err := fmt.Sscan(s, &seed); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("repeat with: PAWL_SEED=%d go test ./internal/e2e -run TestKills", seed)
	rng := rand.New(rand.NewPCG(seed, 0))

	address := freeAddress(t)
	rel := newRelay(t, seed, "http://"+address+"/events", "Bearer s3cret")
	srv := servertest.MinIO(t, servertest.Options{Webhook: rel.url})
	w := newWorld(t, srv)
	srv.Notify(t, inputs)

	dir := t.TempDir()
	database := filepath.Join(dir, "pawl.db")
	config := filepath.Join(dir, "pawl.yaml")
	text := fmt.Sprintf(killConfig, database, srv.Endpoint, srv.Region, address)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	v := &victim{
		binary: build(t, dir), config: config, address: address,
		env: append(os.Environ(), "PAWL_WEBHOOK_TOKEN=s3cret", "AWS_ACCESS_KEY_ID="+srv.AccessKey, "AWS_SECRET_ACCESS_KEY="+srv.SecretKey),
	}

	for i := range objects {
		w.put(t, fmt.Sprintf("dir %d/object %d", i%11, i), fmt.Sprintf("first of %d", i))
	}
	v.start(t)
	for n := range kills {
		deadline := time.Now().Add(time.Duration(50+rng.IntN(650)) * time.Millisecond)
		for time.Now().Before(deadline) {
			w.change(t, rng, objects, n)
		}
		v.kill(t)
		v.start(t)
	}
	for i := range objects { // every object ends with a change of its own
		w.put(t, fmt.Sprintf("dir %d/object %d", i%11, i), fmt.Sprintf("last of %d", i))
		if i%10 == 0 {
			w.remove(t, fmt.Sprintf("dir %d/object %d", i%11, i))
		}
	}
	led, err := sqliteledger.Open(t.Context(), database)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = led.Close() })
	eventually(t, 2*time.Minute, func(ctx context.Context) ([]string, error) {
		if n := rel.left(); n > 0 {
			return []string{fmt.Sprintf("%d notifications are not acknowledged", n)}, nil
		}
		bad, rows, err := unsettled(ctx, led)
		if rows != objects {
			bad = append(bad, fmt.Sprintf("%d rows for %d objects", rows, objects))
		}
		return bad, err
	})
	eventually(t, time.Minute, func(ctx context.Context) ([]string, error) {
		return w.wrong(ctx, led, "up/", strings.ToUpper)
	})
	v.stop(t)
	remembered(t, led, rel)
}

// change puts, overwrites or removes some object.
func (w *world) change(t *testing.T, rng *rand.Rand, objects, n int) {
	t.Helper()
	i := rng.IntN(objects)
	key := fmt.Sprintf("dir %d/object %d", i%11, i)
	if _, ok := w.want[key]; ok && rng.IntN(4) == 0 {
		w.remove(t, key)
		return
	}
	w.put(t, key, fmt.Sprintf("round %d of %d, %d", n, i, rng.Uint64()))
}

// remembered checks that the ledger knows of every acknowledged event, and that
// work was really interrupted.
func remembered(t *testing.T, led ledger.Store, rel *relay) {
	t.Helper()
	rows := map[string]ledger.Row{}
	takenOver := 0
	for row, err := range led.Scan(t.Context(), ledger.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		rows[row.Key] = row
		for _, h := range row.History {
			if h.What == "taken over" {
				takenOver++
			}
		}
	}
	rel.mu.Lock()
	defer rel.mu.Unlock()
	for _, e := range rel.acked {
		if row, ok := rows[e.Object.Key]; !ok || row.EventTime.Before(e.Time) {
			t.Errorf("%s of %s was acknowledged, and the ledger has not heard of it", e.Name, e.Object)
		}
	}
	t.Logf("%d events acknowledged, %d notifications doubled, %d claims taken over in the histories", len(rel.acked), rel.doubled, takenOver)
	if takenOver == 0 || rel.doubled == 0 {
		t.Error("no work was interrupted, or nothing doubled: the test shows too little")
	}
}

// victim is a worker process.
type victim struct {
	binary, config, address string
	env                     []string
	cmd                     *exec.Cmd
	log                     *os.File
	starts                  int
}

// build makes the pawl binary.
func build(t testing.TB, dir string) string {
	t.Helper()
	path := filepath.Join(dir, "pawl")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", path, "github.com/pawlhq/pawl/cmd/pawl").CombinedOutput()
	if err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return path
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// start returns when the worker listens.
func (v *victim) start(t *testing.T) {
	t.Helper()
	if v.log == nil {
		f, err := os.Create(filepath.Join(filepath.Dir(v.config), "worker.log"))
		if err != nil {
			t.Fatal(err)
		}
		v.log = f
		t.Cleanup(func() {
			if v.cmd != nil {
				_ = v.cmd.Process.Kill()
				_ = v.cmd.Wait()
			}
			v.showLog(t)
		})
	}
	v.starts++
	v.cmd = exec.Command(v.binary, "run", "-c", v.config)
	v.cmd.Env, v.cmd.Stdout, v.cmd.Stderr = v.env, v.log, v.log
	if err := v.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, 20*time.Second, func(ctx context.Context) ([]string, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodHead, "http://"+v.address+"/events", nil)
		if err != nil {
			return nil, err
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return nil, err
		}
		return nil, resp.Body.Close()
	})
}

func (v *victim) showLog(t *testing.T) {
	if !t.Failed() {
		return
	}
	b, err := os.ReadFile(v.log.Name())
	if err != nil {
		t.Log(err)
		return
	}
	t.Logf("the workers said, at the end:\n%s", b[max(0, len(b)-8<<10):])
}

func (v *victim) kill(t *testing.T) {
	t.Helper()
	if err := v.cmd.Process.Kill(); err != nil {
		t.Fatalf("the worker ended by itself: %v", err)
	}
	if err := v.cmd.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Fatalf("the worker ended by itself: %v", err)
	}
	v.cmd = nil
}

// stop ends the last worker in order.
func (v *victim) stop(t *testing.T) {
	t.Helper()
	if err := v.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := v.cmd.Wait(); err != nil {
		t.Errorf("an orderly end: %v", err)
	}
	v.cmd = nil
}
