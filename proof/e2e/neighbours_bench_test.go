package e2e

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/action/copyaction"
	"github.com/pawlhq/pawl/action/httpaction"
	"github.com/pawlhq/pawl/action/imageaction"
	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/proof/servertest"
	"github.com/pawlhq/pawl/source"
	"github.com/pawlhq/pawl/store/memory"
)

const (
	neighbourCopies   = 100
	neighbourPictures = 40
	neighbourPosts    = 40
)

func BenchmarkNeighbours(b *testing.B) {
	var alone, beside time.Duration
	for b.Loop() {
		alone += timeCopies(b, false)
		beside += timeCopies(b, true)
	}
	b.ReportMetric(alone.Seconds()/float64(b.N), "alone-s")
	b.ReportMetric(beside.Seconds()/float64(b.N), "beside-s")
	b.ReportMetric(beside.Seconds()/alone.Seconds(), "ratio")
	b.ReportMetric(0, "ns/op")
}

func timeCopies(b *testing.B, neighbours bool) time.Duration {
	b.Helper()
	server := servertest.MinIO(b, servertest.Options{})
	in, out := server.NewBucket(b), server.NewBucket(b)
	store := open(b, server)
	events := &listSource{}
	copies := make(chan struct{}, neighbourCopies)
	place := func(prefix string) *pawl.Output { return &pawl.Output{Bucket: out, Prefix: prefix} }
	pipelines := []pawl.Pipeline{{
		Name: "copy", Match: pawl.Match{Bucket: in, Prefix: "copy/"}, To: place("copy/"), Handler: doneNotifier{must(copyaction.New(copyaction.Config{}))(b), copies},
	}}
	if neighbours {
		pipelines = append(pipelines,
			pawl.Pipeline{Name: "image", Match: pawl.Match{Bucket: in, Prefix: "image/"}, To: place("image/"), Handler: must(imageaction.New(imageaction.Config{Grayscale: true}))(b)},
			pawl.Pipeline{Name: "post", Match: pawl.Match{Bucket: in, Prefix: "post/"}, Handler: must(httpaction.New(httpaction.Config{URL: silentService(b)}))(b)},
		)
		for _, scans := range []int{3000, 90} { // the first is rejected
			bomb := scanBomb(4992, scans)
			for i := range neighbourPictures / 2 {
				events.add(put(b, store, in, fmt.Sprintf("image/%d-%d.jpg", scans, i), bomb))
			}
		}
		for i := range neighbourPosts {
			events.add(put(b, store, in, fmt.Sprintf("post/%d", i), []byte("x")))
		}
	}
	for i := range neighbourCopies {
		events.add(put(b, store, in, fmt.Sprintf("copy/%d", i), []byte(strings.Repeat("copy", 1000))))
	}
	p, err := pawl.New(pawl.Config{
		Ledger: memory.New(), Objects: store, Sources: []pawl.Source{events}, Pipelines: pipelines, ShutdownTimeout: time.Millisecond, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(b.Context(), 5*time.Minute)
	defer cancel()
	ended := make(chan error, 1)
	start := time.Now()
	go func() { ended <- p.Run(ctx) }()
	for range neighbourCopies {
		select {
		case <-copies:
		case <-ctx.Done():
			b.Fatal("the copies took more than five minutes")
		}
	}
	took := time.Since(start)
	cancel()
	if err := <-ended; err != nil {
		b.Fatal(err)
	}
	return took
}

func must[T any](v T, err error) func(b *testing.B) T {
	return func(b *testing.B) T {
		b.Helper()
		if err != nil {
			b.Fatal(err)
		}
		return v
	}
}

type doneNotifier struct {
	pawl.Handler
	done chan<- struct{}
}

func (c doneNotifier) Handle(ctx context.Context, t *pawl.Task) error {
	err := c.Handler.Handle(ctx, t)
	if err == nil {
		c.done <- struct{}{}
	}
	return err
}

type listSource struct{ events []event.Event }

func (h *listSource) add(e event.Event) { h.events = append(h.events, e) }

func (h *listSource) Run(ctx context.Context, sink source.Sink) error {
	for _, e := range h.events {
		if err := sink.Deliver(ctx, source.Delivery{Events: []event.Event{e}, Done: func(source.Outcome) {}}); err != nil {
			return err
		}
	}
	<-ctx.Done()
	return nil
}

func put(b *testing.B, store bucket.Store, name, key string, content []byte) event.Event {
	b.Helper()
	o := event.Object{Bucket: name, Key: key}
	body := bucket.Object{Body: strings.NewReader(string(content)), Size: int64(len(content))}
	if _, err := store.Put(b.Context(), o, body, bucket.Condition{}); err != nil {
		b.Fatal(err)
	}
	return event.Event{Object: o, Kind: event.Created, Size: int64(len(content)), Time: time.Now().UTC()}
}

func silentService(b *testing.B) string {
	ctx, stop := context.WithCancel(b.Context())
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-ctx.Done():
		}
	}))
	s.Config.BaseContext = func(net.Listener) context.Context { return ctx }
	s.Start()
	b.Cleanup(func() {
		stop()
		s.CloseClientConnections()
		s.Close()
	})
	return s.URL
}

// scanBomb returns a progressive JPEG whose scans take a few bytes each, but make the decoder visit all
// blocks.
func scanBomb(side, scans int) []byte {
	segment := func(marker byte, data ...byte) []byte {
		return append([]byte{0xff, marker, byte((len(data) + 2) >> 8), byte(len(data) + 2)}, data...)
	}
	table := func(class, value byte) []byte { // a single one-bit code
		return segment(0xc4, append(append([]byte{class, 1}, make([]byte, 15)...), value)...)
	}
	quant := append([]byte{0}, []byte(strings.Repeat("\x01", 64))...)
	b := append([]byte{0xff, 0xd8}, segment(0xdb, quant...)...)
	b = append(b, segment(0xc2, 8, byte(side>>8), byte(side), byte(side>>8), byte(side), 1, 1, 0x11, 0)...)
	b = append(append(b, table(0x00, 0)...), table(0x10, 0xe0)...)
	blocks := (side / 8) * (side / 8)
	b = append(append(b, segment(0xda, 1, 1, 0x00, 0, 0, 0)...), make([]byte, blocks/8+1)...)
	for range scans {
		b = append(append(b, segment(0xda, 1, 1, 0x00, 1, 63, 0)...), make([]byte, 2*(blocks/(1<<14)+1))...)
	}
	return append(b, 0xff, 0xd9)
}
