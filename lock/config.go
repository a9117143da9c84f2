package lock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
	"unicode/utf8"

	"github.com/pawlhq/pawl/event"
)

// Config is the configuration of a lock. The zero Config has the defaults.
type Config struct {
	// TTL is the duration of the lease after each renewal. A crashed holder blocks other holders
	// for this time. Default 30 s; the range is [MinTTL] to [MaxTTL].
	TTL time.Duration
	// ID is the holder's name for this lease, at most [MaxID] bytes of UTF-8, and need not be
	// unique.
	ID string
	// Owner and Reason describe the holder, in at most [MaxText] bytes of UTF-8 each.
	Owner, Reason string
}

// Limits of a Config.
const (
	MinTTL = time.Second
	MaxTTL = 24 * time.Hour
	// MaxID is in bytes.
	MaxID = 128
	// MaxText is in bytes.
	MaxText = 1 << 10

	defaultTTL = 30 * time.Second
)

var (
	// ErrConfig is returned for an invalid configuration or call.
	ErrConfig = errors.New("invalid use")
	// ErrHeld is returned if another holder has the lock. The error is a *[HeldError].
	ErrHeld = errors.New("the lock is held")
	// ErrSlow is returned if the store takes longer to answer than a lease lasts.
	ErrSlow = errors.New("the store takes longer to answer than the lease lasts")
	// ErrLost is returned if the holder lost the lease, or did not renew it in time.
	ErrLost = errors.New("the lock was lost")
)

// HeldError describes the current holder of a lock.
type HeldError struct {
	// Lock is s3://bucket/key, or register:name.
	Lock   string
	Record Record
	// Limit is the limit of the caller's semaphore if the holder's limit differs, or 0.
	Limit int
}

// Error describes the holder.
func (e *HeldError) Error() string {
	if e.Record.Token == 0 {
		return fmt.Sprintf("%s: %s", e.Lock, ErrHeld)
	}
	s := fmt.Sprintf("%s: %s by %s", e.Lock, ErrHeld, e.Record.describeHolder())
	if e.Limit > 0 {
		s += fmt.Sprintf("; its limit is %d, not %d: all holders must use the same limit", e.Record.Limit, e.Limit)
	}
	return s
}

// Is reports whether target is ErrHeld.
func (e *HeldError) Is(target error) bool { return target == ErrHeld }

func (e *HeldError) withCause(ctx context.Context, err error) error {
	if e == nil || ctx.Err() == nil {
		return err
	}
	return fmt.Errorf("%w: %w", e, err)
}

func (r *Record) describeHolder() string {
	s := "another process"
	if r.Owner != "" {
		s = event.Quote(r.Owner)
	}
	if r.Host != "" {
		s += fmt.Sprintf(" on %s (pid %d)", event.Quote(r.Host), r.PID)
	}
	if r.ID != "" {
		s += " as " + event.Quote(r.ID)
	}
	s += fmt.Sprintf(" since %s", r.Since.UTC().Format(time.RFC3339))
	if r.Reason != "" {
		s += ": " + event.Quote(r.Reason)
	}
	return s
}

func (c Config) holderRecord() (Record, error) {
	if c.TTL == 0 {
		c.TTL = defaultTTL
	}
	if c.TTL < MinTTL || c.TTL > MaxTTL {
		return Record{}, fmt.Errorf("%w: TTL %v: want %v to %v", ErrConfig, c.TTL, MinTTL, MaxTTL)
	}
	for _, text := range []string{c.Owner, c.Reason} {
		if len(text) > MaxText || !utf8.ValidString(text) {
			return Record{}, fmt.Errorf("%w: Owner and Reason: want at most %d bytes of UTF-8 each", ErrConfig, MaxText)
		}
	}
	if len(c.ID) > MaxID || !utf8.ValidString(c.ID) {
		return Record{}, fmt.Errorf("%w: ID: want at most %d bytes of UTF-8", ErrConfig, MaxID)
	}
	host, err := os.Hostname()
	if err != nil {
		host = ""
	}
	return Record{ID: c.ID, Owner: c.Owner, Reason: c.Reason, Host: host, PID: os.Getpid(), TTL: c.TTL.Milliseconds()}, nil
}
