package httpaction

import (
	"context"
	"net"
	"net/http"
	"os"
	"syscall"
	"testing"

	"github.com/pawlhq/pawl/action/internal/actiontest"
)

// TestOutages: which failures are an outage of the service, and after how many objects.
func TestOutages(t *testing.T) {
	for name, c := range map[string]struct {
		dial  error
		code  int
		cause string
		want  int
	}{
		"refused":           {dial: &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}, cause: "unreachable", want: 2},
		"no such name":      {dial: &net.DNSError{Err: "no such host", Name: "load.example", IsNotFound: true}, cause: "unreachable", want: 2},
		"no name server":    {dial: &net.DNSError{Err: "server misbehaving", Name: "load.example", IsTemporary: true}, cause: "unreachable", want: 2},
		"503":               {code: 503, cause: "unreachable", want: 2},
		"502":               {code: 502, cause: "gateway", want: 5},
		"504":               {code: 504, cause: "gateway", want: 5},
		"500":               {code: 500},
		"429":               {code: 429},
		"400":               {code: 400},
		"closed unanswered": {},
	} {
		t.Run(name, func(t *testing.T) {
			h := serve(t, Config{}, func(w http.ResponseWriter, _ *http.Request) {
				if c.code == 0 {
					panic(http.ErrAbortHandler)
				}
				w.WriteHeader(c.code)
			})
			if c.dial != nil {
				h.client.Transport.(*http.Transport).DialContext = func(context.Context, string, string) (net.Conn, error) { return nil, c.dial }
			}
			err := h.Handle(t.Context(), task())
			if err == nil {
				t.Fatal("no error")
			}
			for _, cause := range []string{"unreachable", "gateway"} {
				want := 0
				if cause == c.cause {
					want = c.want
				}
				if got := actiontest.SharedBy(err, cause); got != want {
					t.Errorf("%v: %s after %d objects, want %d", err, cause, got, want)
				}
			}
		})
	}
}
