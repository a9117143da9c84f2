package sqlite

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"zombiezen.com/go/sqlite"

	"github.com/pawlhq/pawl/store"
)

type request struct {
	changes []store.Change
	apply   bool
	start   time.Time

	done chan struct{} // closed when out and err are set
	out  []store.Outcome
	err  error
}

// Swap implements [store.Store].
func (s *Store) Swap(ctx context.Context, changes []store.Change) ([]store.Outcome, error) {
	return s.submit(ctx, &request{changes: changes})
}

// Apply implements [store.Store].
func (s *Store) Apply(ctx context.Context, changes []store.Change) ([]store.Outcome, error) {
	if ctx.Err() == nil {
		if err := traits.CheckAll(changes); err != nil {
			return nil, err
		}
	}
	return s.submit(ctx, &request{changes: changes, apply: true})
}

// submit queues a request. Requests share transactions, because each transaction waits for the disk
// once. The caller that gets the writer executes all queued requests.
//
// A transaction reads the caller's records, so submit waits for its end even if the context has
// ended.
func (s *Store) submit(ctx context.Context, r *request) ([]store.Outcome, error) {
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case s.readOnly:
		return nil, s.refuse("is open for reading only", nil)
	}
	r.start, r.done = time.Now(), make(chan struct{})
	s.mu.Lock()
	s.queue = append(s.queue, r)
	s.mu.Unlock()
	select {
	case w := <-s.writer:
		err := s.lead(ctx, w, r)
		s.writer <- w
		if err != nil {
			return nil, err
		}
	case <-r.done:
	case <-ctx.Done():
		if s.withdraw(r) {
			return nil, context.Cause(ctx)
		}
	}
	<-r.done
	return r.out, r.err
}

func (s *Store) withdraw(r *request) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(s.queue, r)
	if i >= 0 {
		s.queue = slices.Delete(s.queue, i, i+1)
	}
	return i >= 0
}

func (s *Store) queued(r *request) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(s.queue, r)
}

// If no transaction starts, lead withdraws own, and the other callers try themselves.
func (s *Store) lead(ctx context.Context, w *writer, own *request) error {
	if !s.queued(own) {
		return nil // another caller has executed it
	}
	if err := s.begin(ctx, w, own.start); err != nil {
		s.withdraw(own)
		return s.explainBegin(ctx, "change", err)
	}
	s.mu.Lock()
	batch := s.queue
	s.queue = nil
	s.mu.Unlock()
	err := w.execute(batch)
	if err == nil {
		err = s.commit(w, "change")
	} else {
		err = s.explain(context.Background(), "change", nil, errors.Join(err, w.rollbackIfOpen()))
	}
	for _, r := range batch {
		if r.err = err; err != nil {
			r.out = nil
		}
		close(r.done)
	}
	return nil
}

func (s *Store) begin(ctx context.Context, w *writer, start time.Time) error {
	if err := s.checkFile(); err != nil {
		return err
	}
	return s.retryBusy(ctx, start, func() error { return run(w.begin) })
}

func (s *Store) explainBegin(ctx context.Context, what string, err error) error {
	var kind error
	if sqlite.ErrCode(err).ToPrimary() == sqlite.ResultBusy {
		kind = store.ErrThrottled
	}
	return s.explain(ctx, what, kind, err)
}

// After an error of commit, the changes may have landed.
func (s *Store) commit(w *writer, what string) error {
	err := run(w.commit)
	if err != nil {
		err = errors.Join(err, w.rollbackIfOpen())
	} else {
		err = s.checkFile()
	}
	if err != nil {
		return s.explain(context.Background(), what, store.ErrUnclear, err)
	}
	return nil
}

// Write runs f in a transaction on the writing connection, and commits if f returns nil: see
// [Store.In]. Keep f short, because all other changes wait for it, including lease renewals. The
// end of ctx interrupts f. f must not commit, roll back, or keep the connection.
func (s *Store) Write(ctx context.Context, f func(conn *sqlite.Conn) error) error {
	const what = "write"
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case s.readOnly:
		return s.refuse("is open for reading only", nil)
	}
	var w *writer
	start := time.Now()
	select {
	case w = <-s.writer:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { s.writer <- w }()
	if err := s.begin(ctx, w, start); err != nil {
		return s.explainBegin(ctx, what, err)
	}
	committed := false
	defer func() {
		w.conn.SetInterrupt(nil)
		if !committed { // also if f panics
			_ = w.rollbackIfOpen() // the next BEGIN would fail as well
		}
	}()
	w.conn.SetInterrupt(ctx.Done())
	err := f(w.conn)
	if open := w.conn.CheckReset(); open != "" {
		_, resetErr := w.conn.Prepare(open) // resets the statement
		err = errors.Join(err, fmt.Errorf("sqlite: the function returned while the statement %q was still open: reset it", open), resetErr)
	}
	switch {
	case ctx.Err() != nil:
		return errors.Join(context.Cause(ctx), err)
	case err != nil:
		return err
	}
	w.conn.SetInterrupt(nil)
	committed = true
	return s.commit(w, what)
}
