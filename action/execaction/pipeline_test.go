//go:build unix

package execaction

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl/action/internal/actiontest"
)

func newWorld(t *testing.T, script string) *actiontest.World {
	t.Helper()
	h, err := newHandler(Config{Command: []string{"sh", "-c", script}, ContentType: "text/plain"})
	if err != nil {
		t.Fatal(err)
	}
	h.grace = time.Minute
	return actiontest.New(t, h)
}

func TestOutputIsStandardOutput(t *testing.T) {
	w := newWorld(t, `case "$PAWL_KEY" in
bad) echo no good >&2; echo half; exit 65;;
down) echo half; exit 1;;
*) tr a-z A-Z;;
esac`)
	w.Put("good", "", []byte("hello"))
	w.Put("empty", "", nil)
	w.Put("bad", "", []byte("x"))
	w.Put("down", "", []byte("x"))
	w.Put("nul\x00", "", []byte("x"))
	w.Run()
	for key, want := range map[string]string{"good": "HELLO", "empty": ""} {
		w.Settled(key)
		got, contentType, ok := w.Output(key)
		if !ok || string(got) != want || contentType != "text/plain" {
			t.Errorf("output of %s: %q, %s, exists: %v", key, got, contentType, ok)
		}
	}
	for key, want := range map[string]string{
		"bad":     "s3://in/bad: sh rejected its input: exit status 65: no good",
		"down":    "s3://in/down: sh failed: exit status 1",
		"nul\x00": `"s3://in/nul\x00": PAWL_KEY holds a NUL byte, which no environment can carry`,
	} {
		if got := w.Dead(key, key != "down"); got != want {
			t.Errorf("error %q, want %q", got, want)
		}
		if _, _, ok := w.Output(key); ok {
			t.Errorf("%q: an output was committed despite the failure", key)
		}
	}
	w.Remove("good")
	w.Run()
	if _, _, ok := w.Output("good"); ok {
		t.Error("the output of a removed object still exists")
	}
}

func TestRemovalsRunTheCommand(t *testing.T) {
	seen := filepath.Join(t.TempDir(), "seen")
	w := newWorld(t, `echo "$PAWL_KIND $PAWL_KEY $PAWL_SIZE $(cat)" >>`+seen)
	w.Put("a", "", []byte("content"))
	w.RunWithoutOutput()
	w.Remove("a")
	w.RunWithoutOutput()
	w.Settled("a")
	got, err := os.ReadFile(seen)
	if err != nil {
		t.Fatal(err)
	}
	if want := "created a 7 content\nremoved a 0 \n"; string(got) != want {
		t.Errorf("the command saw %q, want %q", got, want)
	}
}

func TestAttemptsShareAnIdempotencyKey(t *testing.T) {
	seen := filepath.Join(t.TempDir(), "seen")
	w := newWorld(t, `echo "$PAWL_ATTEMPT $PAWL_FENCE $PAWL_IDEMPOTENCY_KEY" >>`+seen+`; exit 1`)
	w.Put("a", "", []byte("x"))
	w.RunWithoutOutput()
	w.Dead("a", false)
	b, err := os.ReadFile(seen)
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(b))
	if len(fields) != 9 || fields[0] != "1" || fields[3] != "2" || fields[6] != "3" {
		t.Fatalf("attempts: %q", b)
	}
	if fields[2] != fields[5] || fields[5] != fields[8] || len(fields[2]) != 32 {
		t.Errorf("idempotency keys differ: %q", b)
	}
	if fields[1] >= fields[4] || fields[4] >= fields[7] {
		t.Errorf("fences do not rise: %q", b)
	}
}
