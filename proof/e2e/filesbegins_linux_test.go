package e2e

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/pawlhq/pawl/files"
	"github.com/pawlhq/pawl/proof/servertest"
	"github.com/pawlhq/pawl/store"
)

var (
	begins     = flag.Int("begins", 2000, "uploads that TestFilesBegins begins on each database")
	beginKills = flag.Int("beginkills", 10, "SIGKILLs of the processes that begin them")
)

const beginProcesses = 2

// The index must match the answers that the processes gave before they were killed. Finally they sweep, 40
// days later: only uploaded files that were not deleted remain.
func TestFilesBegins(t *testing.T) {
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		path := filepath.Join(t.TempDir(), "files.db")
		testBegins(t, path, path)
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		server := servertest.Postgres(t)
		u, err := url.Parse(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		var answers atomic.Uint64
		flaky := servertest.NewLossyProxy(t, u.Host, func([]byte) bool { return answers.Add(1)%499 == 0 })
		u.Host = flaky.Addr
		testBegins(t, server.URL, u.String())
		t.Logf("%d answers were lost", answers.Load()/499)
	})
}

// testBegins passes the processes another address than the checker, so that answers can be lost.
func testBegins(t *testing.T, direct, through string) {
	seed := *firstSeed
	if seed == 0 {
		seed = rand.Uint64N(1 << 40)
	}
	t.Logf("repeat with: go test ./proof/e2e -run TestFilesBegins -begins %d -beginkills %d -seed %d", *begins, *beginKills, seed)
	records, err := openRecords(t.Context(), direct)
	if err != nil {
		t.Fatal(err)
	}
	defer records.Close()
	k := &beginChecker{records: records, known: map[string]*begunFile{}, ids: map[string]string{}}
	k.run(t, beginWork{Store: through, Seed: seed, Begins: *begins / beginProcesses / beginClients}, *beginKills)
	k.checkAnswers(t, k.checkConsistency(t))
	for days := 40; days <= 80; days += 40 {
		k.run(t, beginWork{Store: through, Seed: seed, Days: days}, min(*beginKills, 2*beginProcesses))
	}
	left := k.checkConsistency(t)
	for id, f := range left {
		want := k.known[f.Idempotency]
		switch {
		case f.State != files.Indexed:
			t.Errorf("%s is %s after all timers", id, f.State)
		case f.Idempotency != "" && (want == nil || want.state == files.Deleted):
			t.Errorf("%s is visible, but was deleted", id)
		}
	}
	for _, f := range k.known {
		if _, exists := left[f.id]; !exists && f.state != files.Deleted && uploaded(f.id) {
			t.Errorf("%s was uploaded, but is missing", f.id)
		}
	}
	t.Logf("%d answers; %d files, %d rejections, %d files after the sweeps, %d kills", k.answers, len(k.known), k.rejected, len(left), k.kills)
	if k.kills < *beginKills || len(left) == 0 {
		t.Error("too few faults: the test shows too little")
	}
}

type begunFile struct {
	beginPlan
	id    string
	state files.State
}

type beginChecker struct {
	records store.Store

	mu              sync.Mutex
	known           map[string]*begunFile // by idempotency key
	ids             map[string]string
	quotaRejections []beginPlan
	answers         int
	rejected        int
	kills           int
}

func (k *beginChecker) run(t *testing.T, b beginWork, kills int) {
	t.Helper()
	errs := make(chan error, beginProcesses)
	for place := range beginProcesses {
		own := b
		own.Place = place
		own.Next = make([]clientPosition, beginClients)
		rng := rand.New(rand.NewPCG(b.Seed, uint64(1000+place)+uint64(b.Days)))
		go func() {
			most := 2 * *begins / max(kills, 1) // answers per run of a process
			if b.Days > 0 {
				most = *begins / 8
			}
			for n := kills / beginProcesses; ; n-- {
				after := 0
				if n > 0 {
					after = 1 + rng.IntN(most)
				}
				killed, err := k.runProcess(t, &own, after)
				if err != nil || !killed && n <= 0 {
					errs <- err
					return
				}
			}
		}()
	}
	for range beginProcesses {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if t.Failed() {
		t.FailNow()
	}
}

func (k *beginChecker) runProcess(t *testing.T, b *beginWork, after int) (killed bool, err error) {
	self, err := os.Executable()
	if err != nil {
		return false, err
	}
	work, err := json.Marshal(b)
	if err != nil {
		return false, err
	}
	var stderr strings.Builder
	cmd := exec.CommandContext(t.Context(), self)
	servertest.DieWithParent(cmd)
	cmd.Env, cmd.Stdin, cmd.Stderr = append(os.Environ(), beginVar+"=1"), strings.NewReader(string(work)), &stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return false, err
	}
	lines := bufio.NewReader(out)
	for n := 1; err == nil; n++ {
		var line []byte
		if line, err = lines.ReadBytes('\n'); err != nil {
			break
		}
		err = k.recordAnswer(b, line)
		if n == after {
			killed = true
			_ = cmd.Process.Kill()
		}
	}
	if !errors.Is(err, io.EOF) {
		_ = cmd.Process.Kill()
	} else {
		err = nil
	}
	if ended := cmd.Wait(); err == nil && !killed && ended != nil {
		err = fmt.Errorf("a process failed: %w: %s", ended, stderr.String())
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if killed {
		k.kills++
	}
	return killed, err
}

func (k *beginChecker) recordAnswer(b *beginWork, line []byte) error {
	var a beginAnswer
	if err := json.Unmarshal(line, &a); err != nil {
		return fmt.Errorf("%s: %w", line, err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.answers++
	if b.Days > 0 {
		return nil
	}
	at := &b.Next[a.Client]
	plan := b.plan(a.Client, at.N)
	step := plan.steps[at.Step]
	at.ID = a.ID
	if at.Step++; at.Step == len(plan.steps) || a.Refused {
		*at = clientPosition{N: at.N + 1}
	}
	switch {
	case a.Refused:
		k.rejected++
		k.quotaRejections = append(k.quotaRejections, plan)
		return nil
	case plan.key == "":
		k.ids[a.ID] = plan.entity
		return nil
	}
	f := k.known[plan.key]
	if f == nil {
		f = &begunFile{beginPlan: plan, id: a.ID}
		k.known[plan.key] = f
	}
	if f.id != a.ID {
		return fmt.Errorf("the key %q began both %s and %s", plan.key, f.id, a.ID)
	}
	f.step(step)
	return nil
}

func (f *begunFile) step(step beginStep) {
	switch {
	case step == stepBegin:
		f.state = files.Pending
	case step == stepDelete:
		f.state = files.Deleted
	case uploaded(f.id):
		f.state = files.Indexed
	default:
		f.state = files.Pending
	}
}

// checkAnswers also checks that uploads were rejected only if the quota had no room.
func (k *beginChecker) checkAnswers(t *testing.T, rows map[string]files.File) {
	t.Helper()
	for key, f := range k.known {
		if got, exists := rows[f.id]; !exists || got.State != f.state || got.Idempotency != key || got.Entity != f.entity || got.Promise != f.promise {
			t.Errorf("%s of %q is %+v: want it %s", f.id, key, got, f.state)
		}
	}
	for id, entity := range k.ids {
		if got, exists := rows[id]; !exists || got.Entity != entity {
			t.Errorf("%s was begun, but is %+v", id, got)
		}
	}
	for id, f := range rows {
		if f.Idempotency != "" && k.known[f.Idempotency] == nil {
			t.Errorf("%s of %q was never answered", id, f.Idempotency)
		}
	}
	index := files.NewIndex(k.records)
	for _, p := range k.quotaRejections {
		used, err := index.Used(t.Context(), p.entity)
		if limit := beginLimit(p.entity); err != nil || k.known[p.key] != nil && p.key != "" || used.Bytes > limit.Bytes || used.Bytes+max(p.promise.Size, files.MinCharge) <= limit.Bytes {
			t.Errorf("%q was rejected: %s uses %+v, %v", p.key, p.entity, used, err)
		}
	}
}

func (k *beginChecker) checkConsistency(t *testing.T) map[string]files.File {
	t.Helper()
	ctx, index := t.Context(), files.NewIndex(k.records)
	rows, used, keys := map[string]files.File{}, map[string]files.Usage{}, map[string]bool{}
	for f, err := range index.Scan(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		rows[f.ID] = f
		u := f.Usage()
		used[f.Entity] = files.Usage{Bytes: used[f.Entity].Bytes + u.Bytes, Open: used[f.Entity].Open + u.Open}
		if f.Idempotency != "" {
			keys[store.Join(f.Entity, f.Idempotency)] = true
		}
	}
	bodies := map[string]map[string]any{}
	for r, err := range k.records.Scan(ctx, store.Range{Space: "file"}) {
		if err != nil {
			t.Fatal(err)
		}
		bodies[r.Name] = members(t, r.Body)
	}
	listed := 0
	for entity := range beginEntities() {
		for r, err := range k.records.Scan(ctx, store.Range{Space: "entity/" + entity}) {
			if err != nil {
				t.Fatal(err)
			}
			listed++
			f, exists := rows[r.Name]
			if !exists || !f.Deletable() || f.Entity != entity || f.Nonce != r.Nonce {
				t.Errorf("%s has the entry %q of %+v", entity, r.Body, f)
			}
			for name, value := range members(t, r.Body) {
				if bodies[r.Name][name] != value {
					t.Errorf("%s: %s is %v in the entry, but %v in the file", r.Name, name, value, bodies[r.Name][name])
				}
			}
		}
		got, err := index.Used(ctx, entity)
		if err != nil || got != used[entity] {
			t.Errorf("%s has usage %+v, %v: its files add up to %+v", entity, got, err, used[entity])
		}
		delete(used, entity)
	}
	for _, f := range rows {
		if f.Deletable() {
			listed--
		}
	}
	if listed != 0 || len(used) > 0 {
		t.Errorf("%d more entries than files; files of unknown entities: %v", listed, used)
	}
	for r, err := range k.records.Scan(ctx, store.Range{Space: "idempotency"}) {
		if err != nil {
			t.Fatal(err)
		}
		id, _ := members(t, r.Body)["file"].(string)
		if f, exists := rows[id]; !exists || !keys[r.Name] || store.Join(f.Entity, f.Idempotency) != r.Name {
			t.Errorf("the key %q names %q, which is %+v", r.Name, id, f)
		}
		delete(keys, r.Name)
	}
	if len(keys) > 0 {
		t.Errorf("%d files have no idempotency key: %.300v", len(keys), keys)
	}
	return rows
}

func members(t *testing.T, body string) (m map[string]any) {
	t.Helper()
	if err := json.Unmarshal([]byte(body), &m); err != nil {
		t.Fatal(err)
	}
	return m
}
