//go:build unix

package execaction

import (
	"errors"
	"io"
	"strings"
	"syscall"
	"testing"

	"github.com/pawlhq/pawl/worker"
)

// The command ignores that its output is closed.
func TestMaxOutput(t *testing.T) {
	var out strings.Builder
	r := shell(t, "printf 0123456789", nil, &out)
	r.maxOutput = 10
	if err := r.execute(t.Context()); err != nil || out.String() != "0123456789" {
		t.Errorf("printed %q, error %v", &out, err)
	}
	for _, script := range []string{
		"cat /dev/zero", "printf 0123456789x", "trap '' PIPE; printf 0123456789; printf x; while :; do sleep 1; done",
	} {
		out.Reset()
		r := shell(t, script, nil, &out)
		r.maxOutput = 10
		err := r.execute(t.Context())
		if !worker.IsPermanent(err) || !strings.HasPrefix(err.Error(), "sh was stopped: its output has more than 10 bytes: set a larger max_output") {
			t.Errorf("%s: error %v", script, err)
		}
		if out.Len() > 10 {
			t.Errorf("%s: %d bytes were retained", script, out.Len())
		}
	}
}

func TestMaxOutputHasADefault(t *testing.T) {
	h, err := newHandler(Config{Command: []string{"sh"}})
	if err != nil || h.maxOutput != 256<<20 {
		t.Errorf("the default is %d bytes, %v", h.maxOutput, err)
	}
	if _, err := New(Config{Command: []string{"sh"}, MaxOutput: -1}); err == nil {
		t.Error("-1 bytes are accepted")
	}
}

func TestUnusedOutputIsNotRetained(t *testing.T) {
	r := shell(t, "head -c 10000000 /dev/zero >&2; head -c 10000000 /dev/zero", nil, nil)
	r.maxOutput = 10
	if err := r.execute(t.Context()); err != nil || cap(r.stderr.last)+cap(r.stdout.last) > 10_000 {
		t.Errorf("%d and %d bytes are retained, error %v", cap(r.stderr.last), cap(r.stdout.last), err)
	}
}

func TestNoFileDescriptors(t *testing.T) {
	r := shell(t, "cat", strings.NewReader("x"), io.Discard)
	withoutDescriptors(t, func() {
		if err := r.execute(t.Context()); !errors.Is(err, syscall.EMFILE) || worker.IsPermanent(err) {
			t.Errorf("error %v, want an error about too many open files", err)
		}
	})
	if err := shell(t, "cat", strings.NewReader("x"), io.Discard).execute(t.Context()); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

func withoutDescriptors(t *testing.T, f func()) {
	t.Helper()
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	none := before
	none.Cur = 3
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &none); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
			t.Fatal(err)
		}
	}()
	f()
}
