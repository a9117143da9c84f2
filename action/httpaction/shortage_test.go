package httpaction

import (
	"context"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/pawlhq/pawl/action/internal/actiontest"
)

// Ten requests that could not be sent for no fault of the service are no attempts:
// the object is not dead, and told of when they can be.
func TestRequestsThatCannotBeSent(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		dead bool
	}{
		"descriptors":    {&net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("socket", syscall.EMFILE)}, false},
		"no name server": {&net.DNSError{Err: "server misbehaving", Name: "load.example", IsTemporary: true}, false},
		"no such name":   {&net.DNSError{Err: "no such host", Name: "load.example", IsNotFound: true, IsTemporary: true}, true},
		"refused":        {&net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}, true},
	} {
		t.Run(name, func(t *testing.T) {
			h := serve(t, Config{URL: "/?token=hunter2"}, func(http.ResponseWriter, *http.Request) {})
			var dials atomic.Int32
			transport := h.client.Transport.(*http.Transport)
			dial := transport.DialContext
			transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
				if dials.Add(1) <= 10 {
					return nil, c.err
				}
				return dial(ctx, network, address)
			}
			w := actiontest.New(t, h)
			w.Put("k", "", []byte("x"))
			w.RunWithoutOutput()
			if !c.dead {
				w.Settled("k")
				return
			}
			if why := w.Dead("k", false); !strings.Contains(why, c.err.Error()) || strings.Contains(why, "hunter2") {
				t.Errorf("died of %q", why)
			}
		})
	}
}

// What the service itself says of its own shortage counts.
func TestShortageOfTheServiceCounts(t *testing.T) {
	h := serve(t, Config{}, func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "too many open files", http.StatusInternalServerError)
	})
	w := actiontest.New(t, h)
	w.Put("k", "", []byte("x"))
	w.RunWithoutOutput()
	w.Dead("k", false)
}
