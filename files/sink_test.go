package files_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/files"
	"github.com/pawlhq/pawl/internal/virtualtime"
	"github.com/pawlhq/pawl/source"
	"github.com/pawlhq/pawl/store"
	"github.com/pawlhq/pawl/store/memory"
)

func message(outcomes chan<- source.Outcome, bucket string, keys ...string) source.Delivery {
	d := source.Delivery{Done: func(o source.Outcome) { outcomes <- o }}
	for _, key := range keys {
		d.Events = append(d.Events, event.Event{Object: event.Object{Bucket: bucket, Key: key}})
	}
	return d
}

func fileID(n int) string { return fmt.Sprintf("%08d-0000-7000-8000-000000000000", n) }

func TestSinkAcknowledgesAfterReconcile(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
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
		if o.stats[fileID(2)] == 0 {
			t.Error("the file after the failed file was not reconciled")
		}
		if f, err := s.Get(t.Context(), fileID(1)); err != nil || f.State != files.Pending || !f.DueAt.Before(time.Now()) {
			t.Errorf("%+v, %v: its timer was due, and stays so", f, err)
		}
	})
}

func TestUnreachableObjectIsRescheduled(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
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
		if err := s.ReconcileNotified(t.Context(), fileID(1)); err != nil {
			t.Error(err)
		}
		f, err := s.Get(t.Context(), fileID(1))
		if wait := time.Until(f.DueAt); err != nil || wait > time.Minute || wait < 59*time.Second || f.Nonce == before.Nonce {
			t.Errorf("in %s, %v, another nonce %v", wait, err, f.Nonce != before.Nonce)
		}
		if err := s.ReconcileNotified(t.Context(), fileID(1)); err != nil {
			t.Error(err)
		}
		if again, err := s.Get(t.Context(), fileID(1)); err != nil || !again.DueAt.Equal(f.DueAt) || again.Nonce == f.Nonce {
			t.Errorf("%+v, %v: want the same time and another nonce", again, err)
		}
		o.fails = nil
		time.Sleep(2 * time.Minute)
		if n, err := sweeper.Round(t.Context()); n != 1 || err != nil {
			t.Error(n, err)
		}
		if f, err = s.Get(t.Context(), fileID(1)); err != nil || !f.DueAt.Equal(f.DropAt) {
			t.Errorf("%+v, %v: want its own time back", f, err)
		}
	})
}

type downStore struct{ store.Store }

func (downStore) Apply(context.Context, []store.Change) ([]store.Outcome, error) {
	return nil, errors.New("the index is down")
}

func TestMessageIsKeptWhileIndexIsDown(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		records := memory.New()
		s := &files.Service{Index: files.NewIndex(records), Objects: &unreliableObjects{stats: map[string]int{}}, Times: files.DefaultTimes(), NewID: func() string { return fileID(1) }}
		if _, _, err := s.Upload(t.Context(), "e", "", files.Promise{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Hour)
		s.Index = files.NewIndex(downStore{records})
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

type hangingObjects struct{ files.Objects }

func (hangingObjects) Stat(ctx context.Context, _ string) (files.ObjectInfo, error) {
	<-ctx.Done()
	return files.ObjectInfo{}, ctx.Err()
}

// A hanging bucket delays a message by less than the timeout of a source.
func TestHangingBucketDoesNotHoldMessages(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		s, o := pending(t, 1)
		s.Objects = hangingObjects{o}
		sink := files.NewSink(s, "b", 1)
		outcomes := make(chan source.Outcome, 1)
		if err := sink.Deliver(t.Context(), message(outcomes, "b", fileID(1))); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		sink.Close(t.Context())
		select {
		case got := <-outcomes:
			if took := time.Since(began); !got.Ack || took > 20*time.Second {
				t.Errorf("%+v after %s", got, took)
			}
		default:
			t.Error("the sink is closed, and its message has no answer")
		}
	})
}

// Audits use UpdatedAt as the time of the last reconciliation.
func TestRepeatedUndeleteKeepsUpdatedAt(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		s, _ := pending(t, 1)
		f, err := s.Get(t.Context(), fileID(1))
		if err != nil {
			t.Fatal(err)
		}
		next := f
		next.State = files.Indexed
		before, err := s.Index.Apply(t.Context(), files.Change{From: &f, Next: next})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		again, err := s.Undelete(t.Context(), f.ID)
		if err != nil || again.Nonce == before.Nonce || !again.UpdatedAt.Equal(before.UpdatedAt) {
			t.Errorf("%+v, %v: want another nonce, and the time of the last reconciliation", again, err)
		}
	})
}
