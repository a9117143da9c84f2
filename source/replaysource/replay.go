// Package replaysource reads notifications from files or standard input: a
// log of them that was kept, or one that was made to process a bucket again.
//
// An input holds JSON values one after the other: one on each line, or pretty
// printed, or with nothing between them. Each is one payload, as a store would
// have sent it. Replaying a payload again is harmless: what the ledger knows is
// refused as a duplicate, or looked at and found done.
package replaysource

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/source"
)

// Config says what to read. Paths is required.
type Config struct {
	// Paths are read in this order. "-" is Stdin.
	Paths []string
	// Stdin's default is os.Stdin. A read of it that the operating system
	// does not let go of when the context ends is left behind.
	Stdin io.Reader
	// Dialect of the notifications; default: told from each payload.
	Dialect event.Dialect
	// TrustSequencer vouches for the store's order; see source.Delivery.
	TrustSequencer bool
	// SkipBad passes over payloads that are JSON but no notification that
	// can be read, and over lines that begin with what is not JSON or is
	// larger than event.MaxPayload. They are logged and counted. Text
	// that is no JSON and does not begin a line ends the replay even so, because
	// the next payload may begin anywhere behind it.
	SkipBad bool
	// ShutdownTimeout is how long Run, when its context has ended, waits for
	// deliveries that the sink has not answered; default 10 s.
	ShutdownTimeout time.Duration
	// Logger's default is slog.Default().
	Logger *slog.Logger
}

// Source is a finite source: its Run ends when everything is read and
// acknowledged.
type Source struct {
	cfg     Config
	total   int64
	started atomic.Bool

	mu       sync.Mutex
	progress Progress
}

var (
	_ source.Source   = (*Source)(nil)
	_ source.Declarer = (*Source)(nil)
)

// Progress counts what a replay has done so far.
type Progress struct {
	Bytes    int64 `json:"bytes"`    // done with
	Total    int64 `json:"total"`    // bytes there are; -1 where an input does not say
	Payloads int64 `json:"payloads"` // read, without those skipped
	Skipped  int64 `json:"skipped"`  // payloads and lines passed over
	Events   int64 `json:"events"`   // in those payloads
	Ignored  int64 `json:"ignored"`  // records in them that say nothing about content

	Acknowledged int64           `json:"acknowledged"` // payloads
	Redelivered  int64           `json:"redelivered"`  // deliveries after one that was not acknowledged
	Verdicts     source.Verdicts `json:"verdicts"`
	// Complete: every payload of every input is acknowledged or skipped.
	Complete bool `json:"complete"`
}

// New checks cfg, and that every file is there.
func New(cfg Config) (*Source, error) {
	cfg.ShutdownTimeout = cmp.Or(cfg.ShutdownTimeout, 10*time.Second)
	cfg.Logger = cmp.Or(cfg.Logger, slog.Default())
	if cfg.Stdin == nil {
		cfg.Stdin = os.Stdin
	}
	switch {
	case len(cfg.Paths) == 0:
		return nil, errors.New(`replay: nothing to read: name files, or "-" for standard input`)
	case cfg.ShutdownTimeout < 0:
		return nil, errors.New("replay: the grace must not be negative")
	case cfg.Dialect != event.Detect && !slices.Contains(event.Dialects, cfg.Dialect):
		_, err := event.ParseDialect(string(cfg.Dialect))
		return nil, fmt.Errorf("replay: %w", err)
	}
	total, err := size(cfg.Paths, cfg.Stdin)
	if err != nil {
		return nil, err
	}
	return &Source{cfg: cfg, total: total, progress: Progress{Total: total}}, nil
}

// Progress may be asked for at any time, from any goroutine.
func (s *Source) Progress() Progress {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.progress
}

func (s *Source) count(f func(p *Progress)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(&s.progress)
}

// Run reads all inputs and delivers what they say, in their order. A payload
// that is not acknowledged is delivered again, up to ten times.
//
// An [*InputError] says what could not be read, a [*DeliveryError] what was not
// acknowledged; in both cases everything before it was. When ctx ends, Run
// returns nil, and Progress tells whether the replay was complete. A source
// runs once.
func (s *Source) Run(ctx context.Context, sink source.Sink) error {
	if s.started.Swap(true) {
		return errors.New("replay: already run: create a new source")
	}
	inner, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	f := newInFlight(s, sink, stop)
	var work sync.WaitGroup
	drained := make(chan struct{})
	work.Go(func() { f.redeliver(inner, drained) })

	err := s.readAll(inner, f)
	interrupted := inner.Err() != nil
	f.drain(inner)
	close(drained)
	work.Wait()

	s.count(func(p *Progress) { p.Complete = err == nil && p.Acknowledged == p.Payloads })
	switch {
	case err != nil && !interrupted:
		return err
	case ctx.Err() != nil:
		return nil
	case inner.Err() != nil:
		return context.Cause(inner)
	}
	return nil
}

// readAll delivers every payload of every input.
func (s *Source) readAll(ctx context.Context, f *inFlight) error {
	for _, path := range s.cfg.Paths {
		if err := s.readOne(ctx, f, path); err != nil {
			return err
		}
	}
	return nil
}

func (s *Source) readOne(ctx context.Context, f *inFlight, path string) error {
	in, err := open(ctx, path, s.cfg.Stdin)
	if err != nil {
		return err
	}
	defer in.close()
	before := s.Progress().Bytes
	values := newValues(in, displayPath(path))
	for {
		payload, at, err := values.next()
		switch {
		case err == io.EOF:
			s.count(func(p *Progress) { p.Bytes = before + values.read() })
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			if err := s.badLine(ctx, values, at, err); err != nil {
				return err
			}
			continue
		}
		if err := s.payload(ctx, f, payload, at); err != nil {
			return err
		}
		s.count(func(p *Progress) { p.Bytes = before + values.offset() })
	}
}

// payload parses and delivers one payload, without keeping any of its bytes.
func (s *Source) payload(ctx context.Context, f *inFlight, payload []byte, at position) error {
	batch, err := event.Parse(payload, s.cfg.Dialect)
	if err != nil {
		return s.bad(ctx, at, err)
	}
	s.count(func(p *Progress) {
		p.Payloads++
		p.Events += int64(len(batch.Events))
		p.Ignored += int64(batch.Ignored)
	})
	return f.deliver(ctx, &delivery{events: batch.Events, at: at})
}

// badLine skips the line of a payload that is not JSON, where that is allowed
// and at is where one begins, or returns why the replay ends.
func (s *Source) badLine(ctx context.Context, v *values, at position, err error) error {
	bad, ok := errors.AsType[*InputError](err)
	if !ok || !bad.Skippable || !s.cfg.SkipBad {
		return err
	}
	if err := v.skipLine(ctx); err != nil && err != io.EOF { // at the end, next says so
		return &InputError{position: at, Err: err}
	}
	return s.bad(ctx, at, bad.Err)
}

// loggedBad is how many skipped payloads are logged one by one.
const loggedBad = 100

// bad skips a payload, where that is allowed, or says why it ends the replay.
func (s *Source) bad(ctx context.Context, at position, err error) error {
	if !s.cfg.SkipBad {
		return &InputError{position: at, Skippable: true, Err: err}
	}
	var skipped int64
	s.count(func(p *Progress) { p.Skipped++; skipped = p.Skipped })
	switch {
	case skipped <= loggedBad:
		s.cfg.Logger.WarnContext(ctx, "skipped a payload that cannot be read", "at", at.String(), "reason", err.Error())
	case skipped == loggedBad+1:
		s.cfg.Logger.WarnContext(ctx, "further payloads that cannot be read are skipped without a log line")
	}
	return nil
}

// Declares implements source.Declarer.
func (s *Source) Declares() (event.Dialect, bool) { return s.cfg.Dialect, s.cfg.TrustSequencer }
