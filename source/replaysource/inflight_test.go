package replaysource_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/source"
	"github.com/pawlhq/pawl/source/replaysource"
	"github.com/pawlhq/pawl/source/sourcetest"
)

func TestGivesUp(t *testing.T) {
	away := errors.New("the ledger is away")
	sink := sourcetest.NewSink(0)
	s := newSource(t, replaysource.Config{Stdin: strings.NewReader(line("a") + "\n" + line("b"))})
	run := running(t, s, sink, 2)
	tries := 0
	for acked := false; tries < 10 || !acked; {
		d := sink.Next(t)
		if d.Events[0].Object.Key == "b" {
			tries++
			d.Done(source.Outcome{RetryAfter: time.Nanosecond, Err: away})
			continue
		}
		acked = true
		d.Done(source.Outcome{Ack: true})
	}
	err := sourcetest.Wait(t, run.Ended, "the end of Run")
	var failed *replaysource.DeliveryError
	const says = "standard input:2: payload 2 (byte 346): not acknowledged after 10 attempts: the ledger is away"
	if !errors.As(err, &failed) || failed.Tries != 10 || !errors.Is(err, away) || !strings.Contains(err.Error(), says) {
		t.Errorf("error is %v", err)
	}
	if p := s.Progress(); p.Acknowledged != 1 || p.Redelivered != 9 || p.Complete {
		t.Errorf("progress %+v", p)
	}
}

// The replay is incomplete if the sink closes.
func TestSinkCloses(t *testing.T) {
	sink := sourcetest.NewSink(0)
	sink.Close()
	s := newSource(t, replaysource.Config{Stdin: strings.NewReader(line("a"))})
	if err := s.Run(t.Context(), sink); !errors.Is(err, source.ErrClosed) {
		t.Errorf("error is %v", err)
	}
}

type heldSink struct{ taken chan func(source.Outcome) }

func (h *heldSink) Deliver(_ context.Context, d source.Delivery) error { return h.TryDeliver(d) }

func (h *heldSink) TryDeliver(d source.Delivery) error {
	h.taken <- d.Done
	return nil
}

func TestInFlightIsBounded(t *testing.T) {
	const lines = event.MaxRecords + 100
	sink := &heldSink{taken: make(chan func(source.Outcome), lines)}
	s := newSource(t, replaysource.Config{Stdin: &generator{left: lines}})
	run := running(t, s, sink, lines)
	var held []func(source.Outcome)
	for range event.MaxRecords {
		held = append(held, sourcetest.Wait(t, sink.taken, "a delivery"))
	}
	if p := s.Progress(); p.Payloads > event.MaxRecords+1 {
		t.Errorf("%d payloads were read with none acknowledged", p.Payloads)
	}
	for range lines - event.MaxRecords {
		held[0](source.Outcome{Ack: true})
		held = append(held[1:], sourcetest.Wait(t, sink.taken, "a delivery"))
	}
	for _, done := range held {
		done(source.Outcome{Ack: true})
	}
	if err := sourcetest.Wait(t, run.Ended, "the end of Run"); err != nil || !s.Progress().Complete {
		t.Errorf("error %v, progress %+v", err, s.Progress())
	}
}

type generator struct {
	left, next int
	line       []byte
}

func (g *generator) Read(p []byte) (int, error) {
	if len(g.line) == 0 {
		if g.left == 0 {
			return 0, io.EOF
		}
		g.left--
		g.line = append(g.line[:0], sourcetest.Payload(fmt.Sprintf("k%07d", g.next))...)
		g.line = append(g.line, '\n')
		g.next++
	}
	n := copy(p, g.line)
	g.line = g.line[n:]
	return n, nil
}

type checkingSink struct {
	t     *testing.T
	seen  int
	inuse uint64
}

func (w *checkingSink) Deliver(_ context.Context, d source.Delivery) error { return w.TryDeliver(d) }

func (w *checkingSink) TryDeliver(d source.Delivery) error {
	if key := d.Events[0].Object.Key; key != fmt.Sprintf("k%07d", w.seen) {
		w.t.Fatalf("delivery %d is of %s", w.seen, key)
	}
	if w.seen++; w.seen%5000 == 0 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		w.inuse = max(w.inuse, m.Sys)
	}
	d.Done(source.Outcome{Ack: true})
	return nil
}

func TestMemory(t *testing.T) {
	const lines, most = 100_000, 64 << 20
	s, sink := newSource(t, replaysource.Config{Stdin: &generator{left: lines}}), &checkingSink{t: t}
	if err := s.Run(t.Context(), sink); err != nil {
		t.Fatal(err)
	}
	if sink.seen != lines || sink.inuse > most {
		t.Errorf("%d deliveries with %d MiB", sink.seen, sink.inuse>>20)
	}
	t.Logf("%d MiB", sink.inuse>>20)
}

type discardingSink struct{}

func (discardingSink) Deliver(_ context.Context, d source.Delivery) error {
	return discardingSink{}.TryDeliver(d)
}

func (discardingSink) TryDeliver(d source.Delivery) error {
	d.Done(source.Outcome{Ack: true})
	return nil
}

func BenchmarkReplay(b *testing.B) {
	input := &generator{left: b.N}
	s := newSource(b, replaysource.Config{Stdin: input})
	b.SetBytes(int64(len(line("k0000000")) + 1))
	b.ReportAllocs()
	b.ResetTimer()
	if err := s.Run(b.Context(), discardingSink{}); err != nil {
		b.Fatal(err)
	}
}
