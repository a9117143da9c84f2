package bench

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	restate "github.com/restatedev/sdk-go"
	"github.com/restatedev/sdk-go/server"

	"github.com/pawlhq/pawl/internal/toolcache"
	"github.com/pawlhq/pawl/proof/servertest"
)

const callers = 512

// The handlers of the virtual objects do nothing.
type virtualObjects struct {
	ingress *http.Client
	rounds  int
}

func newVirtualObjects(b *testing.B) *virtualObjects {
	b.Helper()
	root, err := toolcache.Root()
	if err != nil {
		b.Fatal(err)
	}
	folder, err := toolcache.Restate.Build(b.Context(), root, os.Stderr)
	if err != nil {
		b.Fatal(err)
	}
	handler, err := server.NewRestate().WithLogger(slog.DiscardHandler, false).Bind(restate.NewObject("Nothing").Handler("Do",
		restate.NewObjectHandler(func(restate.ObjectContext, restate.Void) (restate.Void, error) { return restate.Void{}, nil }))).Handler()
	if err != nil {
		b.Fatal(err)
	}
	service := httptest.NewUnstartedServer(handler)
	service.Config.Protocols = new(http.Protocols)
	service.Config.Protocols.SetUnencryptedHTTP2(true)
	service.Start()
	b.Cleanup(service.Close)
	r := servertest.Restate(b, folder)
	if err := post(b.Context(), r.Admin, "/deployments", fmt.Sprintf(`{"uri": %q}`, service.URL)); err != nil {
		b.Fatal(err)
	}
	return &virtualObjects{ingress: r.Ingress}
}

func (v *virtualObjects) call(b *testing.B) time.Duration {
	b.Helper()
	v.rounds++ // new objects each round
	var next atomic.Int64
	var wg sync.WaitGroup
	start := time.Now()
	for range callers {
		wg.Go(func() {
			for i := next.Add(1); i <= int64(*objects); i = next.Add(1) {
				if err := post(b.Context(), v.ingress, fmt.Sprintf("/Nothing/%d-%d/Do", v.rounds, i), ""); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	return time.Since(start)
}

func post(ctx context.Context, c *http.Client, path, body string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://restate"+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	resp, err := c.Do(r)
	if err != nil {
		return err
	}
	said, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close() // it was read completely
	if err == nil && resp.StatusCode >= 300 {
		err = fmt.Errorf("%s: %s: %s", path, resp.Status, said)
	}
	return err
}
