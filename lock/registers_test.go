package lock

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
)

// storeRegisters have the faults of a store. Errors that a ledger does not have become ErrUnclear.
type storeRegisters struct{ bucket.Store }

var errLedger = errors.New("the ledger is not answering")

func (r *storeRegisters) ReadRegister(ctx context.Context, name string) (ledger.Register, error) {
	info, body, err := r.Get(ctx, event.Object{Bucket: "b", Key: name})
	if errors.Is(err, bucket.ErrNotFound) {
		return ledger.Register{Name: name}, nil
	}
	if err != nil {
		return ledger.Register{}, fmt.Errorf("%w: %w", registerError(err), err)
	}
	value, err := io.ReadAll(body)
	return ledger.Register{Name: name, Version: info.ETag, Value: value}, err
}

func (r *storeRegisters) WriteRegister(ctx context.Context, name, version string, value []byte) (string, error) {
	o := bucket.Object{Body: bytes.NewReader(value), Size: int64(len(value)), ContentType: mediaType}
	next, err := r.Put(ctx, event.Object{Bucket: "b", Key: name}, o, bucket.Condition{IfAbsent: version == "", IfMatch: version})
	if err != nil {
		return "", fmt.Errorf("%w: %w", registerError(err), err)
	}
	return next, nil
}

func registerError(err error) error {
	switch {
	case errors.Is(err, bucket.ErrPrecondition):
		return ledger.ErrRegisterChanged
	case permanent(err):
		return ledger.ErrUnusable
	}
	return errLedger
}

func (r *storeRegisters) RemoveRegister(context.Context, string, string) error {
	panic("not used by locks")
}

func (r *storeRegisters) ListRegisters(context.Context, string) iter.Seq2[ledger.Register, error] {
	panic("not used by locks")
}

func TestOnRegister(t *testing.T) {
	inBubble(t, func(b *bubble) {
		all := &storeRegisters{b.store}
		var token int64
		for _, owner := range []string{"one", "two"} {
			m, err := OnRegister(all, "audit/lease", Config{Owner: owner})
			b.noError(err)
			l := b.mustAcquire(m.Acquire(b.Context()))
			if l.Token() <= token {
				b.Errorf("token %d after %d", l.Token(), token)
			}
			token = l.Token()
			other, err := OnRegister(all, "audit/lease", Config{})
			b.noError(err)
			_, err = other.TryAcquire(b.Context())
			b.wantError(err, ErrHeld, "register:audit/lease: the lock is held by "+owner)
			b.noError(l.Release(b.Context()))
		}
		b.put("foreign", "{}", nil)
		m, err := OnRegister(all, "foreign", Config{})
		b.noError(err)
		_, err = m.Acquire(b.Context())
		b.wantError(err, ErrForeign, "register:foreign")
		if b.content("foreign") != "{}" {
			b.Error("the register was overwritten")
		}
	})
}

func TestOnRegisterRejectsInvalid(t *testing.T) {
	for _, c := range []struct {
		name   string
		config Config
		says   string
	}{
		{"", Config{}, "1 to 256"},
		{"two words", Config{}, "printable ASCII"},
		{"k", Config{TTL: time.Millisecond}, "TTL 1ms"},
	} {
		if _, err := OnRegister(nil, c.name, c.config); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q, %+v: %v, want %q", c.name, c.config, err, c.says)
		}
	}
}

// A Mutex that watched a lease in listings need not wait for a second TTL.
func TestObserve(t *testing.T) {
	inBubble(t, func(b *bubble) {
		all := &storeRegisters{b.store}
		ours, err := OnRegister(all, "a", Config{Owner: "ours"})
		b.noError(err)
		b.noError(b.mustAcquire(ours.TryAcquire(b.Context())).Release(b.Context()))
		other, err := OnRegister(all, "a", Config{Owner: "other"})
		b.noError(err)
		ctx, die := context.WithCancel(b.Context())
		defer die()
		l := b.mustAcquire(other.TryAcquire(ctx))
		observe := func() time.Duration {
			r, err := all.ReadRegister(b.Context(), "a")
			b.noError(err)
			left, err := ours.Observe(r)
			b.noError(err)
			return left
		}
		l.stop() // the process dies
		const watched = defaultTTL + defaultTTL*clockTolerance/100
		if left := observe(); left != watched {
			b.Errorf("%v are left, want %v", left, watched)
		}
		time.Sleep(watched - time.Second)
		if left := observe(); left != time.Second {
			b.Errorf("%v are left, want 1s", left)
		}
		if _, err := ours.TryAcquire(b.Context()); !errors.Is(err, ErrHeld) {
			b.Errorf("a second before it has expired: %v", err)
		}
		time.Sleep(time.Second)
		if left := observe(); left != 0 {
			b.Errorf("%v are left, want 0", left)
		}
		b.noError(b.mustAcquire(ours.TryAcquire(b.Context())).Release(b.Context()))
		if left := observe(); left != 0 {
			b.Errorf("a released lease left %v", left)
		}
	})
}
