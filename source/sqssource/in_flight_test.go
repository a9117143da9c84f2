package sqssource_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/pawlhq/pawl/internal/virtualtime"
	"github.com/pawlhq/pawl/source"
	"github.com/pawlhq/pawl/source/sourcetest"
	"github.com/pawlhq/pawl/source/sqssource"
)

func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	credentials(t)
	virtualtime.Test(t, f)
}

func wantRequests(t *testing.T, f *fake, requests ...string) {
	t.Helper()
	synctest.Wait()
	got := f.requests()
	slices.Sort(got) // concurrent requests come in any order
	slices.Sort(requests)
	if d := cmp.Diff(requests, got, cmpopts.EquateEmpty()); d != "" {
		t.Errorf("requests (-want +got):\n%s", d)
	}
}

func sleep(d time.Duration) { <-time.After(d) }

func nextByKey(t *testing.T, sink *sourcetest.Sink, n int) (all []source.Delivery) {
	t.Helper()
	for range n {
		all = append(all, sink.Next(t))
	}
	slices.SortFunc(all, func(a, b source.Delivery) int {
		return strings.Compare(a.Events[0].Object.Key, b.Events[0].Object.Key)
	})
	return all
}

// In this test, the limit is one hour.
func TestMessageIsRenewedUntilTheLimit(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f, l, sink := newFake(sourcetest.Payload("a")), &log{}, sourcetest.NewSink(1)
		f.run(t, sink, l, func(s *sqssource.Source) { s.SetVisibility(30*time.Second, time.Hour) })
		d := sink.Next(t)
		sleep(time.Minute)
		wantRequests(t, f,
			"10s ChangeMessageVisibilityBatch m0=30", "20s ChangeMessageVisibilityBatch m0=30", "30s ChangeMessageVisibilityBatch m0=30",
			"40s ChangeMessageVisibilityBatch m0=30", "50s ChangeMessageVisibilityBatch m0=30", "1m0s ChangeMessageVisibilityBatch m0=30")
		sleep(58 * time.Minute)
		f.requests()
		sleep(time.Hour)
		synctest.Wait()
		late := f.requests()
		if last := late[len(late)-1]; last != "59m55s ChangeMessageVisibilityBatch m0=5" {
			t.Errorf("renewed at last: %s", last)
		}
		if n := l.lines("up to the queue's time limit"); n != 1 {
			t.Errorf("logged the end of the hold %d times", n)
		}
		d.Done(source.Outcome{Ack: true})
		sleep(time.Second)
		wantRequests(t, f, "1h59m0s DeleteMessageBatch m0")
	})
}

func TestInvalidHandleIsNotRenewed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f, l, sink := newFake(sourcetest.Payload("a"), sourcetest.Payload("b")), &log{}, sourcetest.NewSink(2)
		f.refuse = func(_, handle string) (int, string) {
			if handle == "m1" {
				return 0, "ReceiptHandleIsInvalid"
			}
			return 0, ""
		}
		f.run(t, sink, l)
		a, b := sink.Next(t), sink.Next(t)
		sleep(12 * time.Second)
		if got := f.requests(); len(got) != 1 || !strings.Contains(got[0], "m1=30") {
			t.Errorf("renewed both in %q", got)
		}
		sleep(20 * time.Second)
		wantRequests(t, f, "20s ChangeMessageVisibilityBatch m0=30", "30s ChangeMessageVisibilityBatch m0=30")
		if n := l.lines("no longer held"); n != 1 {
			t.Errorf("logged the lost message %d times", n)
		}
		a.Done(source.Outcome{Ack: true})
		b.Done(source.Outcome{Ack: true}) // the queue may still know it by another handle
		sleep(10 * time.Second)
		wantRequests(t, f, "32s DeleteMessageBatch m0 m1")
		if n := l.lines("could not delete or release"); n != 1 {
			t.Errorf("logged the failed deletion %d times", n)
		}
	})
}

func TestFailedEntriesAreSentAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var bodies []string
		for i := range 12 {
			bodies = append(bodies, sourcetest.Payload(fmt.Sprintf("k%02d", i)))
		}
		f, l, sink := newFake(bodies...), &log{}, sourcetest.NewSink(12)
		failures := 3
		f.refuse = func(action, handle string) (int, string) {
			switch {
			case action == "DeleteMessageBatch" && handle == "m4" && failures > 0:
				failures--
				return 0, "InternalError"
			case handle == "m5":
				return 0, "ReceiptHandleIsInvalid"
			}
			return 0, ""
		}
		f.run(t, sink, l)
		for _, d := range nextByKey(t, sink, 12) {
			if d.Events[0].Object.Key == "k11" {
				d.Done(source.Outcome{RetryAfter: 90*time.Second + 1})
				continue
			}
			d.Done(source.Outcome{Ack: true})
		}
		sleep(10 * time.Second)
		wantRequests(t, f,
			"0s DeleteMessageBatch m0 m1 m2 m3 m4 m5 m6 m7 m8 m9", "0s DeleteMessageBatch m10", "0s ChangeMessageVisibilityBatch m11=91",
			"1s DeleteMessageBatch m4", "2s DeleteMessageBatch m4", "3s DeleteMessageBatch m4")
	})
}

func TestUnacknowledgedMessageIsDelayed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f, l, sink := newFake(), &log{}, sourcetest.NewSink(1)
		f.run(t, sink, l)
		for i, d := range []time.Duration{0, time.Millisecond, 90 * time.Second, 24 * time.Hour} {
			f.add(fmt.Sprint("n", i), sourcetest.Payload("a"))
			sink.Next(t).Done(source.Outcome{RetryAfter: d, Err: errors.New("another worker is processing the object")})
			sleep(time.Second)
		}
		wantRequests(t, f, "0s ChangeMessageVisibilityBatch n0=1", "1s ChangeMessageVisibilityBatch n1=1",
			"2s ChangeMessageVisibilityBatch n2=90", "3s ChangeMessageVisibilityBatch n3=43140")
	})
}

// The source does not retry deletions of messages that the queue will redeliver.
func TestOutage(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f, l, sink := newFake(sourcetest.Payload("a")), &log{}, sourcetest.NewSink(1)
		down := false
		f.refuse = func(string, string) (int, string) {
			if down {
				return http.StatusBadRequest, "ExpiredTokenException"
			}
			return 0, ""
		}
		r := f.run(t, sink, l)
		d := sink.Next(t)
		synctest.Wait()
		f.update(func() { down = true })
		d.Done(source.Outcome{Ack: true})
		sleep(10 * time.Minute)
		if n := l.lines("renew them"); n == 0 || n > 9 {
			t.Errorf("logged %d times in ten minutes that credentials have expired", n)
		}
		select {
		case err := <-r.ended:
			t.Fatalf("Run ended: %v", err)
		default:
		}
		f.update(func() { down = false })
		f.add("again", sourcetest.Payload("a"))
		sleep(time.Minute) // longer than the longest back-off
		sink.Next(t).Done(source.Outcome{Ack: true})
		sleep(time.Second)
		if got := f.requests(); !strings.HasSuffix(got[len(got)-1], "DeleteMessageBatch again") {
			t.Errorf("after the outage: %q", got)
		}
	})
}

func TestFullSinkStopsReceiving(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f, l, sink := newFake(sourcetest.Payload("a"), sourcetest.Payload("b")), &log{}, sourcetest.NewSink(1)
		f.run(t, sink, l)
		synctest.Wait()
		f.add("more", sourcetest.Payload("c"))
		sleep(5 * time.Minute)
		if waiting, polls := f.state(); waiting != 1 || polls != 0 {
			t.Errorf("%d polls and %d waiting messages, want 0 and 1", polls, waiting)
		}
		for range 3 {
			sink.Next(t).Done(source.Outcome{Ack: true})
		}
	})
}

func TestMaxInFlight(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f, l, sink := newFake(), &log{}, sourcetest.NewSink(100)
		for i := range 100 {
			f.add(fmt.Sprint("n", i), sourcetest.Payload(fmt.Sprint(i)))
		}
		f.run(t, sink, l, func(s *sqssource.Source) { s.SetMaxInFlight(30) })
		synctest.Wait()
		if n, _ := f.state(); n != 70 {
			t.Errorf("%d messages wait, want 70", n)
		}
		for range 100 {
			sink.Next(t).Done(source.Outcome{Ack: true})
		}
	})
}

func TestNumberOfReceiversFollowsTheLoad(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f, l, sink := newFake(), &log{}, sourcetest.NewSink(0)
		for i := range 200 {
			f.add(fmt.Sprint("n", i), sourcetest.Payload(fmt.Sprint(i)))
		}
		f.run(t, sink, l)
		for range 200 {
			sink.Next(t).Done(source.Outcome{Ack: true})
		}
		synctest.Wait()
		if _, n := f.state(); n != 8 {
			t.Errorf("%d receivers at the end of 200 messages, want 8", n)
		}
		sleep(time.Minute)
		synctest.Wait()
		if _, n := f.state(); n != 1 {
			t.Errorf("%d receivers poll an empty queue, want 1", n)
		}
	})
}

func TestShutdownReleasesMessages(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f, l, sink := newFake(sourcetest.Payload("a"), sourcetest.Payload("b"), sourcetest.Payload("c")), &log{}, sourcetest.NewSink(2)
		r := f.run(t, sink, l)
		synctest.Wait() // two messages are in the sink, and one in the source
		r.cancel()
		sleep(time.Second)
		sink.Next(t).Done(source.Outcome{Err: errors.New("the worker is shutting down")})
		sleep(time.Second)
		wantRequests(t, f, "0s ChangeMessageVisibilityBatch m2=0", "1s ChangeMessageVisibilityBatch m0=0")
		if err := <-r.ended; err != nil {
			t.Error(err)
		}
		if got := f.requests(); !strings.HasSuffix(got[len(got)-1], " m1=0") {
			t.Errorf("at the end of the shutdown timeout: %q", got)
		}
		if n := l.lines("released unacknowledged messages"); n != 1 {
			t.Errorf("logged the release %d times", n)
		}
	})
}

type stoppingSink struct {
	*sourcetest.Sink
	stop func()
}

func (e *stoppingSink) Deliver(_ context.Context, d source.Delivery) error {
	defer e.stop()
	return e.Sink.TryDeliver(d)
}

func TestNothingIsDeliveredDuringShutdown(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f, l := newFake(sourcetest.Payload("a"), sourcetest.Payload("b"), sourcetest.Payload("c")), &log{}
		sink := &stoppingSink{Sink: sourcetest.NewSink(3)}
		ready := make(chan struct{})
		var r *running
		sink.stop = func() { <-ready; r.cancel() }
		r = f.run(t, sink, l)
		close(ready)
		sink.Next(t).Done(source.Outcome{Ack: true})
		if err := <-r.ended; err != nil {
			t.Error(err)
		}
		wantRequests(t, f, "0s DeleteMessageBatch m0", "0s ChangeMessageVisibilityBatch m1=0 m2=0")
	})
}

func TestShutdownWhileTheQueueIsUnresponsive(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f, l, sink := newFake(sourcetest.Payload("a")), &log{}, sourcetest.NewSink(1)
		var silent atomic.Bool
		r := f.run(t, sink, l, func(s *sqssource.Source) {
			s.SetServer(func(r *http.Request) (*http.Response, error) {
				if silent.Load() {
					<-r.Context().Done()
					return nil, r.Context().Err()
				}
				return f.do(r)
			})
		})
		sink.Next(t)
		synctest.Wait()
		silent.Store(true)
		began := time.Now()
		r.cancel()
		if err := <-r.ended; err != nil || time.Since(began) > 21*time.Second {
			t.Errorf("shutdown took %s: %v", time.Since(began), err)
		}
	})
}
