package sourcetest

import (
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl/source"
)

// Running is a running source.
type Running struct {
	Source source.Source
	Cancel func()
	Ended  <-chan error
	// Acknowledged is closed when the sender has all acknowledgements.
	Acknowledged <-chan struct{}
}

// Start runs a source with the given shutdown timeout on sink. It sends each payload, in any order, until
// it is acknowledged. All goroutines that Start starts must end with the test.
type Start func(t *testing.T, sink source.Sink, shutdownTimeout time.Duration, payloads []string) *Running

// Test runs the rules of package source. Call it from an external test package: goroutines that run code of
// the source's package count as leaked.
func Test(t *testing.T, start Start) {
	rules := []struct {
		name string
		rule func(*testing.T, Start)
	}{
		{"acknowledges nothing before its outcome", acknowledgesNothingBefore},
		{"redelivers messages without an acknowledgement", redelivers},
		{"applies backpressure while the sink is full", appliesBackpressure},
		{"does not acknowledge for a closed sink", doesNotAcknowledgeForClosedSink},
		{"waits for outcomes at shutdown", waitsAtShutdown},
		{"delivers nothing during shutdown", deliversNothingDuringShutdown},
		{"waits no longer than the shutdown timeout", waitsNoLongerThanShutdownTimeout},
	}
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) { r.rule(t, start) })
	}
}

const longTimeout = time.Hour

func acknowledgesNothingBefore(t *testing.T, start Start) {
	sink := NewSink(3)
	run := start(t, sink, longTimeout, payloads(3))
	held := sink.Next(t)
	for range 2 {
		sink.Next(t).Done(source.Outcome{Ack: true})
	}
	run.mustNotBeAcknowledged(t)
	held.Done(source.Outcome{Ack: true})
	Wait(t, run.Acknowledged, "the acknowledgement")
	run.mustEnd(t)
}

func redelivers(t *testing.T, start Start) {
	sink := NewSink(1)
	run := start(t, sink, longTimeout, payloads(1))
	first := sink.Next(t)
	first.Done(source.Outcome{RetryAfter: time.Millisecond, Err: errors.New("the ledger is unavailable")})
	second := sink.Next(t)
	if a, b := first.Events[0].Object, second.Events[0].Object; a != b {
		t.Errorf("first delivered %s, then %s", a, b)
	}
	run.mustNotBeAcknowledged(t)
	second.Done(source.Outcome{Ack: true})
	Wait(t, run.Acknowledged, "the acknowledgement")
	run.mustEnd(t)
}

func appliesBackpressure(t *testing.T, start Start) {
	sink := NewSink(1)
	run := start(t, sink, longTimeout, payloads(3))
	sink.Refused(t)
	run.mustNotBeAcknowledged(t)
	seen := make(map[string]bool)
	for range 3 {
		d := sink.Next(t)
		seen[d.Events[0].Object.Key] = true
		d.Done(source.Outcome{Ack: true})
	}
	if len(seen) != 3 {
		t.Errorf("delivered %d different events of 3", len(seen))
	}
	Wait(t, run.Acknowledged, "the acknowledgement")
	run.mustEnd(t)
}

func doesNotAcknowledgeForClosedSink(t *testing.T, start Start) {
	sink := NewSink(1)
	sink.Close()
	run := start(t, sink, longTimeout, payloads(1))
	sink.Refused(t)
	run.Cancel()
	Wait(t, run.Ended, "the end of Run") // nil or ErrClosed
	run.mustNotBeAcknowledged(t)
	run.mustLeaveNoGoroutines(t)
}

func waitsAtShutdown(t *testing.T, start Start) {
	sink := NewSink(1)
	run := start(t, sink, longTimeout, payloads(1))
	held := sink.Next(t)
	run.Cancel()
	select {
	case err := <-run.Ended:
		t.Fatalf("Run ended (%v) while the sink had a delivery", err)
	default:
	}
	held.Done(source.Outcome{Ack: true})
	Wait(t, run.Acknowledged, "the acknowledgement")
	run.mustEnd(t)
}

func deliversNothingDuringShutdown(t *testing.T, start Start) {
	sink := NewSink(2)
	run := start(t, sink, longTimeout, payloads(2))
	first, second := sink.Next(t), sink.Next(t)
	run.Cancel()
	first.Done(source.Outcome{RetryAfter: time.Millisecond, Err: errors.New("the worker is shutting down")})
	second.Done(source.Outcome{Ack: true})
	run.mustEnd(t)
	run.mustNotBeAcknowledged(t)
	select {
	case <-sink.deliveries:
		t.Error("a released message was delivered again")
	default:
	}
}

func waitsNoLongerThanShutdownTimeout(t *testing.T, start Start) {
	sink := NewSink(1)
	run := start(t, sink, 20*time.Millisecond, payloads(1))
	held := sink.Next(t)
	run.mustEnd(t)
	run.mustNotBeAcknowledged(t)
	held.Done(source.Outcome{Ack: true}) // too late; must not block
	run.mustLeaveNoGoroutines(t)
}

func (r *Running) mustNotBeAcknowledged(t *testing.T) {
	t.Helper()
	select {
	case <-r.Acknowledged:
		t.Fatal("acknowledged too early")
	default:
	}
}

func (r *Running) mustEnd(t *testing.T) {
	t.Helper()
	r.Cancel()
	if err := Wait(t, r.Ended, "the end of Run"); err != nil {
		t.Errorf("Run returned %v, want nil", err)
	}
	r.mustLeaveNoGoroutines(t)
}

// A goroutine that has just signalled Run may still be returning.
func (r *Running) mustLeaveNoGoroutines(t *testing.T) {
	t.Helper()
	pkg := reflect.TypeOf(r.Source).Elem().PkgPath()
	deadline := time.After(waitTimeout)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		stack := goroutines(pkg)
		if stack == "" {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("a goroutine is still running after Run has returned:\n%s", stack)
		}
	}
}

func goroutines(pkg string) string {
	buf := make([]byte, 1<<20)
	stacks := string(buf[:runtime.Stack(buf, true)])
	for stack := range strings.SplitSeq(stacks, "\n\n") {
		if strings.Contains(stack, pkg+".") {
			return stack
		}
	}
	return ""
}

func payloads(n int) []string {
	made := make([]string, n)
	for i := range made {
		made[i] = Payload(fmt.Sprintf("k%d", i))
	}
	return made
}

// Payload returns an AWS notification of a created object. The key must need no encoding.
func Payload(key string) string {
	return `{"Records":[{"eventVersion":"2.1","eventSource":"aws:s3","awsRegion":"eu-west-1",` +
		`"eventTime":"2026-01-02T03:04:05.678Z","eventName":"ObjectCreated:Put",` +
		`"s3":{"s3SchemaVersion":"1.0","bucket":{"name":"photos","arn":"arn:aws:s3:::photos"},` +
		`"object":{"key":"` + key + `","size":3,"eTag":"764efa883dda1e11db47671c4a3bbd9e","sequencer":"0055AED6DCD90281E5"}}}]}`
}
