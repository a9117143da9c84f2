package lock

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/bucket/buckettest"
	"github.com/pawlhq/pawl/bucket/membucket"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/internal/virtualtime"
)

// bubble runs a test with a store in memory, in virtual time.
type bubble struct {
	*testing.T
	store *membucket.Store
	lock  string
}

func inBubble(t *testing.T, do func(b *bubble)) {
	t.Helper()
	virtualtime.Test(t, func(t *testing.T) {
		do(&bubble{t, membucket.New(time.Now, []string{"b"}), onObject})
	})
}

const (
	onObject   = "s3://b/k"
	onRegister = "register:k"
)

// onBoth runs a test with a lock on an object, and with one on a register.
func onBoth(t *testing.T, do func(b *bubble)) {
	t.Helper()
	for _, lock := range []string{onObject, onRegister} {
		kind, _, _ := strings.Cut(lock, ":")
		t.Run(kind, func(t *testing.T) {
			inBubble(t, func(b *bubble) {
				b.lock = lock
				do(b)
			})
		})
	}
}

// user is one process. Its calls are counted, and can fail.
type user struct {
	*bubble
	calls  *buckettest.Faults
	bucket *Bucket
	before map[buckettest.Op]int
}

func (b *bubble) user() *user {
	calls := buckettest.NewFaults(b.store)
	return &user{b, calls, Proved(calls, "b"), map[buckettest.Op]int{}}
}

func (u *user) mutex(c Config) *Mutex {
	u.Helper()
	if u.lock == onRegister {
		holder, err := c.holderRecord()
		u.noError(err)
		return u.bucket.onRegister(&storeRegisters{u.calls}, "k", holder)
	}
	m, err := u.bucket.Mutex("k", c)
	if err != nil {
		u.Fatal(err)
	}
	return m
}

func (b *bubble) mutex(c Config) *Mutex { return b.user().mutex(c) }

func (u *user) semaphore(n int, c Config) *Semaphore {
	u.Helper()
	s, err := u.bucket.Semaphore("k", n, c)
	if err != nil {
		u.Fatal(err)
	}
	return s
}

func (u *user) rw(c Config) *RWMutex {
	u.Helper()
	m, err := u.bucket.RWMutex("k", c)
	if err != nil {
		u.Fatal(err)
	}
	return m
}

// The requests since the previous call.
func (u *user) wantRequests(want string) {
	u.Helper()
	var made []string
	for _, op := range []buckettest.Op{buckettest.Head, buckettest.List, buckettest.Get, buckettest.Put, buckettest.Delete} {
		n := u.calls.Calls(op)
		if d := n - u.before[op]; d > 0 {
			made = append(made, fmt.Sprintf("%d %s", d, op))
		}
		u.before[op] = n
	}
	if got := strings.Join(made, ", "); got != want {
		u.Errorf("it took %q, want %q", got, want)
	}
}

func (b *bubble) mustAcquire(l *Lease, err error) *Lease {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if b.Failed() {
			l.stop() // otherwise the renewals make the test fail again
		}
	})
	return l
}

func (b *bubble) noError(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func (b *bubble) wantError(err, kind error, says ...string) {
	b.Helper()
	if !errors.Is(err, kind) {
		b.Fatalf("%v: want %v", err, kind)
	}
	for _, s := range says {
		if !strings.Contains(err.Error(), s) {
			b.Errorf("%v: it does not say %q", err, s)
		}
	}
}

func sleep(d time.Duration) { <-time.After(d) }

// It behaves like a paused process.
func (b *bubble) acquireWithoutRenewal(m *Mutex) *heldLease {
	b.Helper()
	h, err := m.acquire(b.Context(), true, m.tryAcquire)
	b.noError(err)
	return h
}

func (b *bubble) acquireSlotWithoutRenewal(n int) (*heldLease, error) {
	b.Helper()
	s := b.user().semaphore(n, Config{TTL: ttl}).slots
	return s.acquire(b.Context(), true, s.tryAcquire)
}

func (b *bubble) content(key string) string {
	b.Helper()
	_, body, err := b.store.Get(b.Context(), event.Object{Bucket: "b", Key: key})
	if errors.Is(err, bucket.ErrNotFound) {
		return ""
	}
	b.noError(err)
	all, err := io.ReadAll(body)
	b.noError(err)
	return string(all)
}

func (b *bubble) put(key, content string, metadata map[string]string) {
	b.Helper()
	_, err := b.store.Put(b.Context(), event.Object{Bucket: "b", Key: key}, bucket.Object{
		Body: bytes.NewReader([]byte(content)), Size: int64(len(content)), ContentType: "text/plain", Metadata: metadata,
	}, bucket.Condition{})
	b.noError(err)
}

func (b *bubble) remove(key string) {
	b.Helper()
	b.noError(b.store.Delete(b.Context(), event.Object{Bucket: "b", Key: key}, bucket.Condition{}))
}

func (b *bubble) keys() (keys []string) {
	b.Helper()
	for info, err := range b.store.List(b.Context(), "b", "", "") {
		b.noError(err)
		keys = append(keys, info.Key)
	}
	return keys
}

func (b *bubble) withTimeout(d time.Duration) context.Context {
	ctx, stop := context.WithTimeout(b.Context(), d)
	b.Cleanup(stop)
	return ctx
}

func noAnswer(ctx context.Context, _ func(context.Context) error) error {
	<-ctx.Done()
	return fmt.Errorf("%w: %w", bucket.ErrUnavailable, ctx.Err())
}

type backgroundAcquire struct {
	done  chan struct{}
	lease *Lease
	err   error
	after time.Duration
}

func acquireInBackground(ctx context.Context, acquire func(context.Context) (*Lease, error)) *backgroundAcquire {
	w, began := &backgroundAcquire{done: make(chan struct{})}, time.Now()
	go func() {
		defer close(w.done)
		w.lease, w.err = acquire(ctx)
		w.after = time.Since(began)
	}()
	return w
}

func (w *backgroundAcquire) wait(b *bubble) *Lease {
	b.Helper()
	<-w.done
	return b.mustAcquire(w.lease, w.err)
}

func (w *backgroundAcquire) stillWaiting(b *bubble) {
	b.Helper()
	synctest.Wait()
	select {
	case <-w.done:
		b.Fatalf("entered, %v", w.err)
	default:
	}
}

func (b *bubble) wantDuration(took, least, most time.Duration) {
	b.Helper()
	if took < least || took > most {
		b.Errorf("after %v, want %v to %v", took, least, most)
	}
}
