//go:build unix

package e2e

import (
	"flag"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawlhq/pawl/proof/servertest"
)

var archiveRecover = flag.Bool("archiverecover", false, "TestArchiveRestoredLedger also recovers, which takes 15 minutes")

// No process may have the ledger open.
func (a *archiveTest) copyLedger(from, to string) {
	a.Helper()
	for _, suffix := range []string{"", "-wal", "-shm"} {
		b, err := os.ReadFile(from + suffix)
		switch {
		case err == nil:
			err = os.WriteFile(to+suffix, b, 0o600)
		case os.IsNotExist(err):
			err = os.RemoveAll(to + suffix)
		}
		if err != nil {
			a.Fatal(err)
		}
	}
}

// The copy is a few seconds old, so the next worker must reject each shard that has a newer object. After a
// recovery, each record is stored once.
func TestArchiveRestoredLedger(t *testing.T) {
	t.Parallel()
	a := newArchiveTest(t, servertest.Kinesalite(t), rand.New(rand.NewPCG(*firstSeed, 23)))
	db := filepath.Join(a.fleet.dir, "pawl.db")
	killed := func(name string, records int) {
		w := a.worker(name, a.fleet.config)
		a.putUntil(records)
		a.waitUntilStored()
		w.signal(os.Kill)
		w.waitForExit(time.Minute)
	}
	killed("first", 400)
	a.copyLedger(db, db+".backup")
	killed("second", 800)
	a.copyLedger(db+".backup", db)
	w := a.worker("third", a.fleet.config)
	refused := func() int { return strings.Count(w.logText(), "does not contain it") }
	a.waitUntil(time.Minute, "refused", func() bool { return refused() >= *archiveShards })
	w.signal(syscall.SIGTERM)
	if code, _ := w.waitForExit(time.Minute); code != 0 || !strings.Contains(w.logText(), `pawl archive recover clicks`) {
		t.Errorf("the exit code is %d", code)
	}
	a.readAll()
	if !*archiveRecover {
		return
	}
	cmd := exec.CommandContext(t.Context(), a.fleet.binary, "archive", "recover", "clicks", "-c", a.fleet.config)
	cmd.Env = append(os.Environ(), a.fleet.env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("recover: %v\n%s", err, out)
	}
	last := a.worker("last", a.fleet.config)
	a.putUntil(1200)
	a.waitUntilStored()
	last.signal(syscall.SIGTERM)
	if code, _ := last.waitForExit(time.Minute); code != 0 {
		t.Errorf("after the recovery the exit code is %d", code)
	}
	a.verify()
	a.readAll()
}
