package audit_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/pawlhq/pawl/audit"
	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/bucket/membucket"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/internal/virtualtime"
	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/store/memory"
	"github.com/pawlhq/pawl/worker"
)

var seedFlag = flag.Uint64("seed", 0, "of the random tests; 0: a new one")

func seed(t *testing.T) *rand.Rand {
	t.Helper()
	n := *seedFlag
	if n == 0 {
		n = rand.Uint64()
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("again with: go test ./audit -run '%s' -seed=%d", t.Name(), n)
		}
	})
	return rand.New(rand.NewPCG(n, 0))
}

// registers is a ledger that outlives the processes that use it. It counts raised rows.
type registers struct {
	*ledger.Rows

	mu     sync.Mutex
	values map[string]ledger.Register
	writes int
	raised map[ledger.RowKey]int
}

func newRegisters() *registers {
	return &registers{Rows: ledger.NewRows(memory.New()), values: map[string]ledger.Register{}, raised: map[ledger.RowKey]int{}}
}

func (r *registers) ReadRegister(_ context.Context, name string) (ledger.Register, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	v := r.values[name]
	v.Name, v.Value = name, bytes.Clone(v.Value)
	return v, nil
}

func (r *registers) WriteRegister(_ context.Context, name, version string, value []byte) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := ledger.CheckRegister(name, value); err != nil {
		return "", err
	}
	if r.values[name].Version != version {
		return "", ledger.ErrRegisterChanged
	}
	r.writes++
	next := fmt.Sprint(r.writes)
	r.values[name] = ledger.Register{Name: name, Version: next, Value: bytes.Clone(value)}
	return next, nil
}

func (r *registers) RemoveRegister(context.Context, string, string) error {
	panic("an audit removes no register")
}

func (r *registers) ListRegisters(context.Context, string) iter.Seq2[ledger.Register, error] {
	return func(func(ledger.Register, error) bool) {}
}

func (r *registers) Swap(ctx context.Context, changes []ledger.Change) ([]ledger.Outcome, error) {
	out, err := r.Rows.Swap(ctx, changes)
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range out {
		if out[i].Applied {
			r.raised[changes[i].Key]++
		}
	}
	return out, err
}

type mortalStore struct {
	*registers
	kill context.CancelFunc

	left sync.Mutex
	n    int
}

var errKilled = errors.New("the process is dead")

func (m *mortalStore) killed() bool {
	m.left.Lock()
	defer m.left.Unlock()
	if m.n--; m.n < 0 {
		m.kill()
	}
	return m.n < 0
}

func (m *mortalStore) ReadRegister(ctx context.Context, name string) (ledger.Register, error) {
	if m.killed() {
		return ledger.Register{}, errKilled
	}
	return m.registers.ReadRegister(ctx, name)
}

func (m *mortalStore) WriteRegister(ctx context.Context, name, version string, value []byte) (string, error) {
	if m.killed() {
		return "", errKilled
	}
	next, err := m.registers.WriteRegister(ctx, name, version, value)
	if m.killed() {
		return "", errKilled
	}
	return next, err
}

func (m *mortalStore) Load(ctx context.Context, keys []ledger.RowKey) ([]ledger.Row, error) {
	if m.killed() {
		return nil, errKilled
	}
	return m.registers.Load(ctx, keys)
}

func (m *mortalStore) Swap(ctx context.Context, changes []ledger.Change) ([]ledger.Outcome, error) {
	if m.killed() {
		return nil, errKilled
	}
	out, err := m.registers.Swap(ctx, changes)
	if m.killed() {
		return nil, errKilled
	}
	return out, err
}

type losses struct {
	objects  *membucket.Store
	ledger   *registers
	pipeline audit.Pipeline
	lost     map[ledger.RowKey]bool
	listed   int
}

// About a fifth of the objects of newLosses have a lost notification.
func newLosses(t *testing.T, rng *rand.Rand, n int) *losses {
	t.Helper()
	at := time.Now().Add(-24 * time.Hour)
	l := &losses{
		objects: membucket.New(func() time.Time { return at }, []string{photos}), ledger: newRegisters(), lost: map[ledger.RowKey]bool{},
		pipeline: audit.Pipeline{Name: "p", Bucket: photos, Match: func(event.Object) bool { return true }},
	}
	var changes []ledger.Change
	for i := range n {
		row := rowWithHave(fmt.Sprintf("%02x/%06d", rng.IntN(20), i), event.Created, ledger.Identity{ETag: "x"})
		row.Nonce, row.CreatedAt, row.UpdatedAt = ledger.Nonce{1}, at, at
		what := rng.IntN(15)
		if what != 0 { // the removal was not lost
			ref := event.Object{Bucket: photos, Key: row.Key}
			body := fmt.Sprint(i)
			if _, err := l.objects.Put(t.Context(), ref, bucket.Object{Body: bytes.NewReader([]byte(body)), Size: int64(len(body))}, bucket.Condition{}); err != nil {
				t.Fatal(err)
			}
			info, err := l.objects.Head(t.Context(), ref)
			if err != nil {
				t.Fatal(err)
			}
			l.listed++
			if what != 1 {
				row.Want.Identity = worker.Identify(&info)
				row.Have = row.Want
			}
		}
		if what < 3 {
			l.lost[row.RowKey] = true
		}
		if what != 2 { // the creation was not lost
			changes = append(changes, ledger.Change{Key: row.RowKey, Row: &row})
		}
	}
	if _, err := ledger.New(l.ledger.Rows).Swap(t.Context(), changes); err != nil {
		t.Fatal(err)
	}
	return l
}

func (l *losses) auditor(t *testing.T, s ledger.Store) *audit.Auditor {
	t.Helper()
	a, err := audit.New(audit.Config{
		Ledger: s, Objects: l.objects, Pipelines: []audit.Pipeline{l.pipeline}, TTL: time.Second, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func (l *losses) check(t *testing.T) {
	t.Helper()
	for key, n := range l.ledger.raised {
		if !l.lost[key] || n != 1 {
			t.Errorf("%s was raised %d times; lost: %v", key, n, l.lost[key])
		}
	}
	for _, key := range slices.SortedFunc(maps.Keys(l.lost), ledger.RowKey.Compare) {
		if l.ledger.raised[key] == 0 {
			t.Errorf("%s was lost but not raised", key)
		}
	}
}

func TestKilledAuditResumes(t *testing.T) {
	rng := seed(t)
	const most = 1000
	killed, resumed := 0, 0
	for killed < minKills || killed < most && resumed == 0 {
		virtualtime.Test(t, func(t *testing.T) {
			l := newLosses(t, rng, 8000)
			options := audit.Options{SettleWindow: time.Hour, Ranges: 1 + rng.IntN(8)}
			report, err := audit.Report{}, errKilled
			unfinished := 0
			for ; err != nil; killed++ {
				ctx, kill := context.WithCancel(t.Context())
				m := &mortalStore{registers: l.ledger, kill: kill, n: 3 + rng.IntN(45)}
				report, err = l.auditor(t, m).Run(ctx, options)
				kill()
				if r, readErr := audit.Unfinished(t.Context(), l.ledger); readErr != nil || r != nil && (err == nil || !r.Ended.IsZero()) {
					t.Errorf("unfinished %+v (%v) after %v", r, readErr, err)
				} else if r != nil {
					unfinished++
				}
			}
			killed--
			if report.Resumed > unfinished {
				t.Errorf("resumed %d times, and was unfinished %d times", report.Resumed, unfinished)
			}
			resumed += report.Resumed
			l.check(t)
			total := report.Total()
			if total.Listed != int64(l.listed) || total.Lost() > int64(len(l.lost)) {
				t.Errorf("%d of %d objects, %d of %d losses", total.Listed, l.listed, total.Lost(), len(l.lost))
			}
			again, err := l.auditor(t, l.ledger).Run(t.Context(), options)
			if err != nil || again.Resumed != 0 {
				t.Errorf("the next audit resumed %d times after a completed one, %v", again.Resumed, err)
			}
			l.check(t)
		})
	}
	t.Logf("%d kills, resumed %d times", killed, resumed)
	if resumed == 0 {
		t.Error("no audit resumed")
	}
}

// Two audits of a ledger without registers may run at once. Only one of them raises each loss.
func TestTwoAuditors(t *testing.T) {
	for _, alone := range []bool{true, false} {
		t.Run(fmt.Sprintf("one at a time %v", alone), func(t *testing.T) {
			virtualtime.Test(t, func(t *testing.T) {
				l := newLosses(t, seed(t), 5000)
				var store ledger.Store = l.ledger
				if !alone {
					store = struct{ ledger.Store }{l.ledger}
				}
				var wg sync.WaitGroup
				found := make([]int64, 2)
				for i := range found {
					wg.Go(func() {
						report, err := l.auditor(t, store).Run(t.Context(), audit.Options{SettleWindow: time.Hour})
						total := report.Total()
						if found[i] = total.Lost(); err != nil {
							t.Error(err)
						}
					})
				}
				wg.Wait()
				l.check(t)
				if found[0]+found[1] != int64(len(l.lost)) || alone && found[0]*found[1] != 0 {
					t.Errorf("found %d, of %d", found, len(l.lost))
				}
			})
		})
	}
}
