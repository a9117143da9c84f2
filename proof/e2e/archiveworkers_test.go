//go:build unix

package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/pawlhq/pawl/proof/rig"
	"github.com/pawlhq/pawl/proof/servertest"
)

var archiveTakeovers = flag.Int("archivetakeovers", 1, "number of workers that TestArchiveTakeoverTime kills")

type archiveWorker struct {
	*testing.T
	*rig.Process
}

func (a *archiveTest) worker(name, config string) *archiveWorker {
	a.Helper()
	cmd := exec.Command(a.fleet.binary, "archive", "run", "-c", config)
	cmd.Env = append(os.Environ(), a.fleet.env...)
	servertest.DieWithParent(cmd)
	process, err := rig.Start(cmd, filepath.Join(a.fleet.dir, name+".log"))
	if err != nil {
		a.Fatal(err)
	}
	w := &archiveWorker{T: a.T, Process: process}
	a.Cleanup(func() {
		w.Kill()
		if a.Failed() {
			a.Logf("%s ended with %v:\n%.4000s", name, w.Err(), w.logText())
		}
	})
	return w
}

func (w *archiveWorker) logText() string {
	w.Helper()
	b, err := os.ReadFile(w.Log)
	if err != nil {
		w.Fatal(err)
	}
	return string(b)
}

func (w *archiveWorker) signal(s os.Signal) {
	w.Helper()
	if err := w.Process.Signal(s); err != nil {
		w.Error(err)
	}
}

func (w *archiveWorker) waitForExit(limit time.Duration) (code int, took time.Duration) {
	w.Helper()
	began := time.Now()
	select {
	case <-w.Done():
		if exit, ok := errors.AsType[*exec.ExitError](w.Err()); ok {
			return exit.ExitCode(), time.Since(began)
		}
		return 0, time.Since(began)
	case <-time.After(limit):
		w.Fatalf("the worker has not ended within %v", limit)
		return 0, 0
	}
}

func (a *archiveTest) waitUntil(limit time.Duration, what string, holds func() bool) time.Duration {
	a.Helper()
	began := time.Now()
	for !holds() {
		if time.Since(began) > limit {
			a.Fatalf("after %v: not yet %s", limit, what)
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-a.Context().Done():
			a.Fatal(a.Context().Err())
		}
	}
	return time.Since(began)
}

func (a *archiveTest) shardsByProcess() map[string]int {
	a.Helper()
	cmd := exec.CommandContext(a.Context(), a.fleet.binary, "archive", "status", "--json", "-c", a.fleet.config)
	cmd.Env = append(os.Environ(), a.fleet.env...)
	out, err := cmd.Output()
	if err != nil {
		return nil
	}
	n := map[string]int{}
	for dec := json.NewDecoder(bytes.NewReader(out)); dec.More(); {
		var s struct{ Owner string }
		if err := dec.Decode(&s); err != nil {
			a.Fatalf("%v: %s", err, out)
		}
		n[s.Owner[strings.LastIndexByte(s.Owner, '/')+1:]]++
	}
	return n
}

func (a *archiveTest) writeVariant(name string, change ...string) string {
	a.Helper()
	text, err := os.ReadFile(a.fleet.config)
	if err != nil {
		a.Fatal(err)
	}
	file := filepath.Join(a.fleet.dir, name+".yaml")
	if err := os.WriteFile(file, []byte(strings.NewReplacer(change...).Replace(string(text))), 0o600); err != nil {
		a.Fatal(err)
	}
	return file
}

// Leases last 30 seconds; the takeover may take 35.
func TestArchiveTakeoverTime(t *testing.T) {
	t.Parallel()
	a := newArchiveTest(t, servertest.Kinesalite(t), rand.New(rand.NewPCG(*firstSeed, 18)))
	a.fleet.config = a.writeVariant("slow", "ttl: "+archiveLease.String(), "ttl: 30s")
	workers := []*archiveWorker{a.worker("worker-0", a.fleet.config)}
	half, all := *archiveShards/2, *archiveShards
	takeovers := *archiveTakeovers
	for n := 0; n < takeovers; n++ {
		killed := workers[n]
		survivor := a.worker(fmt.Sprintf("worker-%d", n+1), a.fleet.config)
		workers = append(workers, survivor)
		pid := fmt.Sprint(survivor.Pid)
		a.waitUntil(2*time.Minute, "shared", func() bool { return a.shardsByProcess()[pid] == half })
		a.putUntil(a.put + 100)
		pause := rand.N(10 * time.Second) // a lease was renewed at most 10 s ago
		began := time.Now()
		a.waitUntil(time.Minute, "time", func() bool { return time.Since(began) > pause })
		killed.signal(os.Kill)
		took := a.waitUntil(2*time.Minute, "taken over", func() bool { return a.shardsByProcess()[pid] == all })
		t.Logf("%d shards were taken over %v after the kill", all-half, took.Round(100*time.Millisecond))
		if took > 35*time.Second { // the machine may have paused: repeat up to two such takeovers
			if takeovers++; takeovers > *archiveTakeovers+2 {
				t.Fatal("takeovers are too slow")
			}
		}
	}
	a.waitUntilStored()
	last := workers[len(workers)-1]
	last.signal(syscall.SIGTERM)
	if code, _ := last.waitForExit(time.Minute); code != 0 {
		t.Errorf("the exit code is %d", code)
	}
	a.verify()
	a.readAll()
}

// A worker gets its share back when it has access to objects again.
func TestArchiveWorkerWithoutAccess(t *testing.T) {
	t.Parallel()
	a := newArchiveTest(t, servertest.Kinesalite(t), rand.New(rand.NewPCG(*firstSeed, 19)))
	objects := newRejectingProxy(t, a.server.Endpoint)
	sick := a.worker("sick", a.writeVariant("sick", a.server.Endpoint, objects.url))
	well := a.worker("well", a.fleet.config)
	pids := [2]string{fmt.Sprint(sick.Pid), fmt.Sprint(well.Pid)}
	shared := func() bool {
		n := a.shardsByProcess()
		return n[pids[0]] == *archiveShards/2 && n[pids[1]] == *archiveShards/2
	}
	a.waitUntil(time.Minute, "shared", shared)
	objects.reject(deny, func(r *http.Request) bool {
		return r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/clicks/20")
	})
	a.putUntil(2000)
	a.waitUntilStored()
	a.waitUntil(time.Minute, "owned by the other process", func() bool { return a.shardsByProcess()[pids[1]] >= *archiveShards-1 })
	objects.reject(nil, nil)
	a.waitUntil(2*time.Minute, "shared again", func() bool {
		a.putUntil(a.put + 20) // a probe needs records
		return shared()
	})
	a.waitUntilStored()
	for _, w := range []*archiveWorker{sick, well} {
		w.signal(syscall.SIGTERM)
		if code, _ := w.waitForExit(time.Minute); code != 0 {
			t.Errorf("the exit code is %d", code)
		}
	}
	if !strings.Contains(sick.logText(), "access denied") {
		t.Error("nothing was denied")
	}
	a.verify()
	a.readAll()
}

func TestArchiveShutdownWithoutLedger(t *testing.T) {
	t.Parallel()
	const grace = 32 * time.Second // the worker gives up after three quarters of it
	a := newArchiveTest(t, servertest.Kinesalite(t), rand.New(rand.NewPCG(*firstSeed, 20)))
	ledger := servertest.Postgres(t)
	a.fleet.config = a.writeVariant("postgres", "sqlite:"+filepath.Join(a.fleet.dir, "pawl.db"), ledger.URL, "ttl: "+archiveLease.String()+"}", fmt.Sprintf("ttl: 30s}\nshutdown_timeout: %v", grace))
	w := a.worker("worker", a.fleet.config)
	a.putUntil(200)
	a.waitUntilStored() // now each shard has a pending intent
	ledger.Stop()
	w.signal(syscall.SIGTERM)
	code, took := w.waitForExit(time.Minute)
	if t.Logf("the worker exited %v after SIGTERM with code %d", took.Round(10*time.Millisecond), code); took > grace {
		t.Errorf("the grace time is %v", grace)
	}
	ledger.Start()
	next := a.worker("next", a.fleet.config)
	a.putUntil(400)
	a.waitUntilStored()
	next.signal(syscall.SIGTERM)
	if code, _ := next.waitForExit(time.Minute); code != 0 {
		t.Errorf("after the ledger recovered, the exit code is %d", code)
	}
	a.verify()
	a.readAll()
}

func TestArchiveFailsAlone(t *testing.T) {
	t.Parallel()
	a := newArchiveTest(t, servertest.Kinesalite(t), rand.New(rand.NewPCG(*firstSeed, 21)))
	other := a.streams.NewStream(t, 1)
	a.writeVariant("one") // verify reads this configuration, of the archive that continues
	two := a.writeVariant("two", "archives:\n", fmt.Sprintf("archives:\n  - name: views\n    kinesis: {stream: %s, endpoint: %q, region: us-east-1}\n    to: s3://%s/views/\n", other, a.streams.Endpoint, a.bucket))
	w := a.worker("worker", two)
	a.putUntil(100)
	a.waitUntilStored()
	claim := "views/_pawl/archive"
	a.waitUntil(time.Minute, "claimed", func() bool {
		_, err := a.server.Client().HeadObject(a.Context(), &s3.HeadObjectInput{Bucket: &a.bucket, Key: &claim})
		return err == nil
	})
	if _, err := a.server.Client().DeleteObject(a.Context(), &s3.DeleteObjectInput{Bucket: &a.bucket, Key: &claim}); err != nil {
		t.Fatal(err)
	}
	a.waitUntil(time.Minute, "ended", func() bool {
		return strings.Contains(w.logText(), "archive stopped with an error; the other archives continue")
	})
	a.putUntil(300)
	a.waitUntilStored()
	w.signal(syscall.SIGTERM)
	if code, _ := w.waitForExit(time.Minute); code != 1 || !strings.Contains(w.logText(), "archive views: ") {
		t.Errorf("the exit code is %d", code)
	}
	a.verify()
	a.readAll()
}
