package files_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/files"
	"github.com/pawlhq/pawl/source"
	"github.com/pawlhq/pawl/store"
	"github.com/pawlhq/pawl/store/memory"
)

// message is a delivery about objects of a bucket, whose outcome is sent on.
func message(outcomes chan<- source.Outcome, bucket string, keys ...string) source.Delivery {
	d := source.Delivery{Done: func(o source.Outcome) { outcomes <- o }}
	for _, key := range keys {
		d.Events = append(d.Events, event.Event{Object: event.Object{Bucket: bucket, Key: key}})
	}
	return d
}

func fileID(n int) string { return fmt.Sprintf("%08d-0000-7000-8000-000000000000", n) }

// TestSink: a message is acknowledged when its files were reconciled, also if the bucket
// gives no answer about one of them: then that one is reconciled a minute later.
func TestSink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, o := pending(t, 2)
		o.fails = func(key string) bool { return key == fileID(1) }
		sink := files.NewSink(s, "b", 2)
		outcomes := make(chan source.Outcome, 1)
		if err := sink.Deliver(t.Context(), message(outcomes, "b", "notes.txt", fileID(9), fileID(1), fileID(2))); err != nil {
			t.Fatal(err)
		}
		want := source.Outcome{Ack: true, Verdicts: source.Verdicts{Raised: 3, Unmatched: 1}}
		if got := <-outcomes; got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
		if err := sink.Deliver(t.Context(), message(outcomes, "another", fileID(2))); err != nil {
			t.Fatal(err)
		}
		if got := <-outcomes; !got.Ack || got.Verdicts.Unmatched != 1 {
			t.Errorf("of another bucket: %+v", got)
		}
		sink.Close(t.Context())
		if o.looks[fileID(2)] == 0 {
			t.Error("the file after the one that failed was not looked at")
		}
		if f, err := s.Get(t.Context(), fileID(1)); err != nil || f.State != files.Pending || !f.LookAt.Before(time.Now()) {
			t.Errorf("%+v, %v: its timer was due, and stays so", f, err)
		}
	})
}

// TestPostponed: of a file that could not be reconciled at a notification the timer is set
// to a minute from now, under a new nonce, and afterwards to its own time.
func TestPostponed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, o := pending(t, 1)
		sweeper := files.Sweeper{Service: s}
		if n, err := sweeper.Round(t.Context()); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		before, err := s.Get(t.Context(), fileID(1))
		if err != nil || before.State != files.Expired {
			t.Fatal(before, err)
		}
		o.fails = func(string) bool { return true }
		if err := s.Notice(t.Context(), fileID(1)); err != nil {
			t.Error(err)
		}
		f, err := s.Get(t.Context(), fileID(1))
		if wait := time.Until(f.LookAt); err != nil || wait > time.Minute || wait < 59*time.Second || f.Nonce == before.Nonce {
			t.Errorf("in %s, %v, another nonce %v", wait, err, f.Nonce != before.Nonce)
		}
		if err := s.Notice(t.Context(), fileID(1)); err != nil {
			t.Error(err)
		}
		if again, err := s.Get(t.Context(), fileID(1)); err != nil || !again.LookAt.Equal(f.LookAt) || again.Nonce == f.Nonce {
			t.Errorf("%+v, %v: want the same time and another nonce", again, err)
		}
		o.fails = nil
		time.Sleep(2 * time.Minute)
		if n, err := sweeper.Round(t.Context()); n != 1 || err != nil {
			t.Error(n, err)
		}
		if f, err = s.Get(t.Context(), fileID(1)); err != nil || !f.LookAt.Equal(f.DropAt) {
			t.Errorf("%+v, %v: want its own time back", f, err)
		}
	})
}

// down is an index that takes no changes.
type down struct{ store.Store }

func (down) Apply(context.Context, []store.Change) ([]store.Outcome, error) {
	return nil, errors.New("the index is down")
}

// TestSinkDown: a message is not acknowledged before the index has answered.
func TestSinkDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		records := memory.New()
		s := &files.Service{Index: files.NewIndex(records), Objects: &trouble{looks: map[string]int{}}, Times: files.DefaultTimes(), NewID: func() string { return fileID(1) }}
		if _, _, err := s.Upload(t.Context(), "e", "", files.Promise{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Hour)
		s.Index = files.NewIndex(down{records})
		sink := files.NewSink(s, "b", 1)
		outcomes := make(chan source.Outcome, 1)
		if err := sink.Deliver(t.Context(), message(outcomes, "b", fileID(1))); err != nil {
			t.Fatal(err)
		}
		if err := sink.TryDeliver(message(outcomes, "b", fileID(1))); !errors.Is(err, source.ErrFull) {
			t.Errorf("a second message: %v, want ErrFull", err)
		}
		waits, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := sink.Deliver(waits, message(outcomes, "b", fileID(1))); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a second message that waits: %v", err)
		}
		if got := <-outcomes; got.Ack || got.Err == nil {
			t.Errorf("%+v", got)
		}
		if err := sink.TryDeliver(message(outcomes, "b", fileID(1))); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		end, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		sink.Close(end)
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("the sink took %s to close", took)
		}
		if got := <-outcomes; got.Ack {
			t.Errorf("canceled: %+v", got)
		}
	})
}
