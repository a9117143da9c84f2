// Package replaysource reads notifications from files or standard input, such as an archived log.
//
// An input contains JSON values, with or without separators. Each value is one payload, as the store would
// send it. Replaying a payload again is harmless: the ledger rejects known events as duplicates.
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

// Config configures a Source. Paths is required.
type Config struct {
	// "-" means Stdin.
	Paths []string
	// Stdin defaults to os.Stdin. A read that the operating system cannot interrupt continues after the
	// context has ended.
	Stdin io.Reader
	// Dialect of the notifications. Default: detected in each payload.
	Dialect event.Dialect
	// TrustSequencer: see source.Delivery.
	TrustSequencer bool
	// SkipBad skips payloads that are JSON but not a valid notification, and lines that begin with invalid
	// or too large JSON. Skipped payloads are logged and counted. Invalid JSON within a line still ends the
	// replay, because the start of the next payload is unknown.
	SkipBad bool
	// ShutdownTimeout bounds the wait for unanswered deliveries after the context of Run has ended.
	// Default 10 s.
	ShutdownTimeout time.Duration
	// Logger defaults to slog.Default().
	Logger *slog.Logger
}

// Source is a finite source. Its Run ends when all inputs are read and acknowledged.
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

// Progress counts the work of a replay.
type Progress struct {
	Bytes    int64 `json:"bytes"`    // processed
	Total    int64 `json:"total"`    // size of all inputs in bytes; -1 if unknown
	Payloads int64 `json:"payloads"` // read, without skipped ones
	Skipped  int64 `json:"skipped"`
	Events   int64 `json:"events"`
	Ignored  int64 `json:"ignored"` // records that do not concern content

	Acknowledged int64           `json:"acknowledged"` // payloads
	Redelivered  int64           `json:"redelivered"`  // deliveries after a payload's first
	Verdicts     source.Verdicts `json:"verdicts"`
	// Complete is set if every payload of every input is acknowledged or skipped.
	Complete bool `json:"complete"`
}

// New validates cfg and checks that every file exists.
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
		return nil, errors.New("replay: ShutdownTimeout must not be negative")
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

// Progress returns the current progress. It is safe for concurrent use.
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

// Run reads all inputs and delivers their events in order. It delivers each payload at most ten times.
//
// Run returns an [*InputError] if an input cannot be read, and a [*DeliveryError] if a payload was not
// acknowledged. Everything before that payload was delivered. When ctx ends, Run returns nil; see
// [Progress.Complete]. A source runs once.
func (s *Source) Run(ctx context.Context, sink source.Sink) error {
	if s.started.Swap(true) {
		return errStarted
	}
	inner, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	f := newInFlight(s, sink, stop)
	var work sync.WaitGroup
	drained := make(chan struct{})
	work.Go(func() { f.redeliver(inner, drained) })

	err := s.readAll(inner, func(payload []byte, at position) error { return s.payload(inner, f, payload, at) })
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

var errStarted = errors.New("replay: already run: create a new source")

func (s *Source) readAll(ctx context.Context, each func(payload []byte, at position) error) error {
	for _, path := range s.cfg.Paths {
		if err := s.readOne(ctx, path, each); err != nil {
			return err
		}
	}
	return nil
}

func (s *Source) readOne(ctx context.Context, path string, each func(payload []byte, at position) error) error {
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
		if err := each(payload, at); err != nil {
			return err
		}
		s.count(func(p *Progress) { p.Bytes = before + values.offset() })
	}
}

func (s *Source) payload(ctx context.Context, f *inFlight, payload []byte, at position) error {
	batch, err := event.Parse(payload, s.cfg.Dialect)
	if err != nil {
		return s.bad(ctx, at, err)
	}
	s.countRead(&batch)
	return f.deliver(ctx, &delivery{events: batch.Events, at: at})
}

func (s *Source) countRead(batch *event.Batch) {
	s.count(func(p *Progress) {
		p.Payloads++
		p.Events += int64(len(batch.Events))
		p.Ignored += int64(batch.Ignored)
	})
}

func (s *Source) badLine(ctx context.Context, v *values, at position, err error) error {
	bad, ok := errors.AsType[*InputError](err)
	if !ok || !bad.Skippable || !s.cfg.SkipBad {
		return err
	}
	if err := v.skipLine(ctx); err != nil && err != io.EOF {
		return &InputError{position: at, Err: err}
	}
	return s.bad(ctx, at, bad.Err)
}

const loggedBad = 100

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
