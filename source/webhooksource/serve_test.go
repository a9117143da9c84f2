package webhooksource_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawlhq/pawl/source"
	"github.com/pawlhq/pawl/source/sourcetest"
	"github.com/pawlhq/pawl/source/webhooksource"
)

var quiet = slog.New(slog.DiscardHandler)

type endpoint struct {
	*webhooksource.Source
	url    string
	cancel func()
	ended  <-chan error
}

func serve(t testing.TB, cfg webhooksource.Config, sink source.Sink, set ...func(*webhooksource.Source)) *endpoint {
	t.Helper()
	cfg.Listen, cfg.Path = "127.0.0.1:0", "/in"
	if cfg.Logger == nil {
		cfg.Logger = quiet
	}
	src, err := webhooksource.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range set {
		f(src)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	var run sync.WaitGroup
	run.Go(func() { ended <- src.Run(ctx, sink) })
	t.Cleanup(func() { cancel(); run.Wait() })
	sourcetest.Wait(t, src.Ready(), "the source to listen")
	return &endpoint{Source: src, url: "http://" + src.Addr().String() + "/in", cancel: cancel, ended: ended}
}

type reply struct {
	status int
	header http.Header
	body   string
}

func (r reply) json(t *testing.T) map[string]any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal([]byte(r.body), &m); err != nil {
		t.Fatalf("answer %q is not JSON: %v", r.body, err)
	}
	return m
}

func send(t testing.TB, method, url string, body io.Reader, headers ...string) reply {
	t.Helper()
	r, err := tryRequest(t.Context(), method, url, body, headers...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func tryRequest(ctx context.Context, method, url string, body io.Reader, headers ...string) (reply, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		return reply{}, err
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return reply{}, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return reply{resp.StatusCode, resp.Header, string(b)}, err
}

func post(t testing.TB, url, payload string, headers ...string) reply {
	t.Helper()
	return send(t, http.MethodPost, url, strings.NewReader(payload), headers...)
}

func posting(t *testing.T, url, payload string) <-chan reply {
	t.Helper()
	got := make(chan reply, 1)
	var wg sync.WaitGroup
	ctx := t.Context()
	wg.Go(func() {
		if r, err := tryRequest(ctx, http.MethodPost, url, strings.NewReader(payload)); err == nil {
			got <- r
		}
	})
	t.Cleanup(wg.Wait)
	return got
}

type ackAll struct{}

func (ackAll) Deliver(_ context.Context, d source.Delivery) error { return ackAll{}.TryDeliver(d) }

func (ackAll) TryDeliver(d source.Delivery) error {
	d.Done(source.Outcome{Ack: true, Verdicts: source.Verdicts{Raised: len(d.Events)}})
	return nil
}

// Like a store with a queue, it posts each payload until it is acknowledged.
func TestRules(t *testing.T) {
	sourcetest.Test(t, func(t *testing.T, sink source.Sink, shutdownTimeout time.Duration, payloads []string) *sourcetest.Running {
		e := serve(t, webhooksource.Config{ShutdownTimeout: shutdownTimeout}, sink)
		acknowledged := make(chan struct{})
		var senders sync.WaitGroup
		ctx := t.Context()
		for _, p := range payloads {
			senders.Go(func() { postUntilAcknowledged(ctx, e.url, p) })
		}
		go func() {
			senders.Wait()
			if ctx.Err() == nil {
				close(acknowledged)
			}
		}()
		t.Cleanup(senders.Wait)
		return &sourcetest.Running{Source: e.Source, Cancel: e.cancel, Ended: e.ended, Acknowledged: acknowledged}
	})
}

func postUntilAcknowledged(ctx context.Context, url, payload string) {
	pause := time.NewTicker(time.Millisecond)
	defer pause.Stop()
	for ctx.Err() == nil {
		r, err := tryRequest(ctx, http.MethodPost, url, strings.NewReader(payload))
		if err == nil && r.status == http.StatusOK {
			return
		}
		select {
		case <-pause.C:
		case <-ctx.Done():
		}
	}
}
