package httpaction

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/pawlhq/pawl/action/internal/actiontest"
)

// Attempts during an outage of this machine do not count, so ten of them do not make the object
// dead.
func TestOutages(t *testing.T) {
	const machine = "machine"
	for name, c := range map[string]struct {
		dial   error
		code   int
		cause  string
		shared int
	}{
		"descriptors":             {dial: &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("socket", syscall.EMFILE)}, cause: machine},
		"no name server":          {dial: &net.DNSError{Err: "server misbehaving", Name: "load.example", IsTemporary: true}, cause: machine},
		"no such name":            {dial: &net.DNSError{Err: "no such host", Name: "load.example", IsNotFound: true, IsTemporary: true}, cause: "unreachable", shared: 2},
		"no such name, permanent": {dial: &net.DNSError{Err: "no such host", Name: "load.example", IsNotFound: true}, cause: "unreachable", shared: 2},
		"refused":                 {dial: &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}, cause: "unreachable", shared: 2},
		"503":                     {code: 503, cause: "unreachable", shared: 2},
		"502":                     {code: 502, cause: "gateway", shared: 5},
		"504":                     {code: 504, cause: "gateway", shared: 5},
		"500":                     {code: 500},
		"429":                     {code: 429},
		"400":                     {code: 400},
		"connection closed":       {},
	} {
		t.Run(name, func(t *testing.T) {
			var failures atomic.Int32
			h := serve(t, Config{URL: "/?token=hunter2"}, func(w http.ResponseWriter, _ *http.Request) {
				switch {
				case c.dial != nil:
				case c.code == 0:
					panic(http.ErrAbortHandler)
				default:
					w.WriteHeader(c.code)
					_, _ = io.WriteString(w, "too many open files") // the service's descriptors, not ours
				}
			})
			transport := h.client.Transport.(*http.Transport)
			dial := transport.DialContext
			transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
				if c.dial != nil && failures.Add(1) <= 11 { // one failure in this test, ten in the pipeline
					return nil, c.dial
				}
				return dial(ctx, network, address)
			}
			err := h.Handle(t.Context(), task())
			if err == nil {
				t.Fatal("no error")
			}
			for _, cause := range []string{"unreachable", "gateway"} {
				want := 0
				if cause == c.cause {
					want = c.shared
				}
				if c.cause == machine && cause == "unreachable" {
					want = 2
				}
				if got := actiontest.SharedBy(err, cause); got != want {
					t.Errorf("%v: %s after %d objects, want %d", err, cause, got, want)
				}
			}
			w := actiontest.New(t, h)
			w.Put("k", "", []byte("x"))
			w.RunWithoutOutput()
			if c.cause == machine {
				w.Settled("k")
				return
			}
			why := w.Dead("k", c.code == 400)
			if strings.Contains(why, "hunter2") || c.dial != nil && !strings.Contains(why, c.dial.Error()) {
				t.Errorf("last error %q", why)
			}
		})
	}
}
