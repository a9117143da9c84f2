package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/audit"
	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/bucket/s3bucket"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/lock"
	"github.com/pawlhq/pawl/proof/servertest"
	"github.com/pawlhq/pawl/source/webhooksource"
	"github.com/pawlhq/pawl/store/sqlite"
)

var (
	auditKills = flag.Int("audit-kills", 3, "number of audits that TestAuditDuringTraffic kills")
	auditSeed  = flag.Uint64("audit-seed", 1, "seed of TestAuditDuringTraffic")
)

const auditAuth = "Bearer secret"

const auditorVar = "PAWL_E2E_AUDITOR"

// In the end, each object has one effect, even if its notification was lost, or if an audit and a
// notification both reported it.
func TestAuditDuringTraffic(t *testing.T) {
	servertest.Long(t)
	t.Parallel()
	t.Logf("repeat with: go test ./proof/e2e -run TestAuditDuringTraffic -audit-kills %d -audit-seed %d", *auditKills, *auditSeed)
	w := newConcurrentAudit(t)
	const lost, live = 3000, 200
	var g errgroup.Group
	g.SetLimit(8)
	for i := range lost {
		g.Go(func() error {
			_, err := w.put(t.Context(), fmt.Sprintf("lost/%05d", i))
			return err
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	before := w.putAndWait(t, "before", live)
	auditors := make(chan error, 1)
	ctx, enough := context.WithCancel(t.Context())
	go func() { auditors <- w.runAudits(ctx, t) }()
	beside := w.putAndWait(t, "beside", live)
	enough()
	if err := <-auditors; err != nil {
		t.Fatal(err)
	}
	t.Logf("from the start of a PUT to its effect: median %v without an audit, %v during one; p99 %v and %v",
		before[len(before)/2], beside[len(beside)/2], before[len(before)*99/100], beside[len(beside)*99/100])

	if out, err := w.auditor(t.Context(), t).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	eventually(t, 2*time.Minute, func(ctx context.Context) ([]string, error) {
		bad, _, err := unsettled(ctx, w.ledger)
		return bad, err
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.effects) != lost+2*live {
		t.Errorf("%d objects have an effect, want %d", len(w.effects), lost+2*live)
	}
	for key, n := range w.effects {
		if n != 1 {
			t.Errorf("%s has %d effects", key, n)
		}
	}
}

type concurrentAudit struct {
	server *servertest.Server
	store  bucket.Store
	ledger ledger.Store
	path   string
	url    string

	mu         sync.Mutex
	effects    map[string]int
	effectSeen chan struct{}
}

func newConcurrentAudit(t *testing.T) *concurrentAudit {
	t.Helper()
	w := &concurrentAudit{path: filepath.Join(t.TempDir(), "ledger.db"), effects: map[string]int{}, effectSeen: make(chan struct{}, 1)}
	hook, err := webhooksource.New(webhooksource.Config{Listen: "127.0.0.1:0", Token: auditAuth})
	if err != nil {
		t.Fatal(err)
	}
	w.server = servertest.MinIO(t, servertest.Options{})
	w.store = newTestBuckets(t, w.server).store
	_, w.ledger = startEffects(t, w.path, w.store, w.effect, hook)
	<-hook.Ready()
	w.url = "http://" + hook.Addr().String() + "/events"
	return w
}

func (w *concurrentAudit) effect(_ context.Context, task *pawl.Task) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.effects[task.Object.Key]++
	select {
	case w.effectSeen <- struct{}{}:
	default:
	}
	return nil
}

func (w *concurrentAudit) put(ctx context.Context, key string) (etag string, err error) {
	return w.store.Put(ctx, event.Object{Bucket: inputs, Key: key}, bucket.Object{Body: strings.NewReader(key), Size: int64(len(key))}, bucket.Condition{})
}

func (w *concurrentAudit) putAndWait(t *testing.T, prefix string, n int) []time.Duration {
	t.Helper()
	var took []time.Duration
	for i := range n {
		key, began := fmt.Sprintf("%s/%05d", prefix, i), time.Now()
		etag, err := w.put(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		post(t, w.url, auditAuth, fmt.Sprintf(`{"Records":[{"eventVersion":"2.1","eventSource":"aws:s3","eventName":"ObjectCreated:Put","eventTime":%q,
			"s3":{"bucket":{"name":%q},"object":{"key":%q,"size":%d,"eTag":%q,"sequencer":"%016X"}}}]}`,
			time.Now().UTC().Format(time.RFC3339Nano), inputs, key, len(key), strings.Trim(etag, `"`), time.Now().UnixNano()))
		for !w.hasEffect(key) {
			select {
			case <-w.effectSeen:
			case <-t.Context().Done():
				t.Fatal("no effect on ", key)
			}
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	return took
}

func (w *concurrentAudit) hasEffect(key string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.effects[key] > 0
}

func (w *concurrentAudit) runAudits(ctx context.Context, t *testing.T) error {
	rng := rand.New(rand.NewPCG(*auditSeed, 0))
	delays := make([]time.Duration, *auditKills)
	for i := range delays {
		delays[i] = time.Duration(rng.Int64N(int64(600 * time.Millisecond)))
	}
	var next sync.Mutex
	var g errgroup.Group
	killed := 0
	for range 2 {
		g.Go(func() error {
			for {
				next.Lock()
				if len(delays) == 0 && ctx.Err() != nil {
					next.Unlock()
					return nil
				}
				after := time.Hour
				if len(delays) > 0 {
					after, delays = delays[0], delays[1:]
				}
				next.Unlock()
				dead, err := w.runAndKill(t, after)
				if err != nil {
					return err
				}
				if dead {
					next.Lock()
					killed++
					next.Unlock()
				}
			}
		})
	}
	err := g.Wait()
	t.Logf("%d of %d kills hit a running audit", killed, *auditKills)
	return err
}

func (w *concurrentAudit) runAndKill(t *testing.T, after time.Duration) (killed bool, err error) {
	ctx, stop := context.WithTimeout(t.Context(), after)
	defer stop()
	out, err := w.auditor(ctx, t).CombinedOutput()
	if err != nil && ctx.Err() == nil {
		return false, fmt.Errorf("an audit failed: %w: %s", err, out)
	}
	return err != nil, nil
}

// The auditor's lease is short, so that the next one need not wait long.
func (w *concurrentAudit) auditor(ctx context.Context, t *testing.T) *exec.Cmd {
	self, err := os.Executable()
	if err != nil {
		t.Error(err)
	}
	text, err := json.Marshal(auditorConfig{Ledger: w.path, Objects: s3bucket.Config{
		Endpoint: w.server.Endpoint, Region: w.server.Region, PathStyle: true, AccessKey: w.server.AccessKey, SecretKey: w.server.SecretKey,
	}})
	if err != nil {
		t.Error(err)
	}
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = append(os.Environ(), auditorVar+"="+string(text))
	return cmd
}

type auditorConfig struct {
	Ledger  string
	Objects s3bucket.Config
}

func runAuditor(ctx context.Context, text string) error {
	var b auditorConfig
	if err := json.Unmarshal([]byte(text), &b); err != nil {
		return err
	}
	records, err := sqlite.Open(ctx, b.Ledger)
	if err != nil {
		return err
	}
	led := ledger.NewRows(records)
	objects, err := s3bucket.New(ctx, b.Objects)
	if err != nil {
		return errors.Join(err, led.Close())
	}
	a, err := audit.New(audit.Config{
		Ledger: led, Objects: objects, TTL: 5 * time.Second, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Pipelines: []audit.Pipeline{{Name: "effects", Bucket: inputs, Match: func(event.Object) bool { return true }}},
	})
	for err == nil {
		_, err = a.Run(ctx, audit.Options{SettleWindow: 5 * time.Second})
		if !errors.Is(err, lock.ErrLost) { // a busy machine may not renew the lease in time
			break
		}
		err = nil
	}
	return errors.Join(err, led.Close())
}
