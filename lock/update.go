package lock

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"time"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/cell"
	"github.com/pawlhq/pawl/event"
)

// Content is what an update reads, and what it writes.
type Content struct {
	// Exists is false if there is no object yet. It says nothing of what is
	// written.
	Exists      bool
	Body        []byte
	ContentType string
	Headers     bucket.Headers
	// Metadata is the user's own. Pawl's is not in it.
	Metadata map[string]string
}

// UpdateConfig says how an object is updated. The zero UpdateConfig is good.
type UpdateConfig struct {
	// Create begins with an empty Content where there is no object. Without it
	// that is a [bucket.ErrNotFound].
	Create bool
	// Fence is the token of the lease under which the object is updated. The
	// update is refused if the object was updated under a higher one, which must
	// have changed its bytes. The highest is kept with the object: it is lost if
	// the object is deleted, or written by other means.
	Fence int64
	// Tries is how often the object is read and changed, at most, while others
	// change it. Default 50.
	Tries int
}

const (
	defaultTries = 50
	// MaxUpdate is how large an object may be to be updated, in bytes.
	MaxUpdate = 64 << 20
)

var (
	// ErrContended: others changed the object every time. Nothing was written.
	ErrContended = errors.New("other writers changed the object during every attempt")
	// ErrFenced: the object was updated under a higher fencing token. Nothing
	// was written.
	ErrFenced = errors.New("the fencing token is too old")
	// ErrUnsure: it cannot be known whether the update was applied.
	ErrUnsure = errors.New("unknown whether the update was applied: inspect the object")
)

// Updated is what became of an update.
type Updated struct {
	// Written is false if the change left everything as it was: then nothing
	// was sent.
	Written bool
	// Tries is how often the object was read and changed.
	Tries int
	// Content is what the change returned.
	Content Content
}

// Update reads an object, changes it, and writes it if it still is what was read;
// otherwise it begins again. So change may run several times. An update is never
// lost or applied twice, whatever becomes of its requests: the metadata of the
// object carry the ids of the last 48 updates, or as many as fit, which tell one's
// own. Where the answer to one that creates the object is lost, it is applied again
// if the object is deleted meanwhile.
//
// It takes 2 requests, a GET and a PUT, and none to write what has not changed,
// unless the Fence is higher than that of the updates before.
// What change returns as an error is returned as it is, and nothing is written.
//
// The object is held in memory. An ETag is of the bytes alone. So where bytes stay
// as they are, or come back exactly, one who read them before can still write over
// what else was updated: over metadata, or a higher Fence. And an answer that gets
// lost just then can be taken for another's. Let every update leave something new in
// the bytes: a number, or the token.
func (b *Bucket) Update(ctx context.Context, key string, change func(context.Context, Content) (Content, error), c UpdateConfig) (Updated, error) {
	return b.update(ctx, key, change, nil, c)
}

// update is Update. It respells a content whose bytes are the same as before, where
// respell is set.
func (b *Bucket) update(ctx context.Context, key string, change func(context.Context, Content) (Content, error), respell func([]byte, int64) []byte, c UpdateConfig) (Updated, error) {
	switch {
	case c.Tries < 0:
		return Updated{}, fmt.Errorf("%w: Tries %d: must not be negative", ErrConfig, c.Tries)
	case c.Fence < 0:
		return Updated{}, fmt.Errorf("%w: Fence %d: must not be negative", ErrConfig, c.Fence)
	case c.Tries == 0:
		c.Tries = defaultTries
	}
	u := &update{env: b.env, ref: event.Object{Bucket: b.name, Key: key}, config: c, change: change, encodeFence: respell}
	return u.run(ctx)
}

// update is one under way.
type update struct {
	*env
	ref    event.Object
	config UpdateConfig
	change func(context.Context, Content) (Content, error)
	// respell returns bytes that mean the same, and differ from those of a lower
	// fence. It may be nil.
	encodeFence func(body []byte, fence int64) []byte
}

func (u *update) String() string { return u.ref.String() }

func (u *update) run(ctx context.Context) (Updated, error) {
	window := minRetryPause
	base, was, err := u.read(ctx)
	if err != nil {
		return Updated{}, err
	}
	for n := 1; ; n++ {
		began := u.clock.Now()
		next, err := u.applyChange(ctx, base, was)
		if err != nil || same(was, next) && u.config.Fence <= base.fence {
			return Updated{Tries: n, Content: next}, err
		}
		if u.encodeFence != nil && bytes.Equal(was.Body, next.Body) {
			next.Body = u.encodeFence(next.Body, u.config.Fence)
		}
		f, now, then, err := u.attempt(ctx, base, next, began)
		switch {
		case err != nil:
			return Updated{Tries: n}, err
		case f != cell.Lost:
			return Updated{Written: true, Tries: n, Content: next}, nil
		case n == u.config.Tries:
			return Updated{Tries: n}, fmt.Errorf("update %s: %w (%d attempts); nothing was written: retry later, or hold a lock", u, ErrContended, n)
		}
		pause := u.jitter(window)
		window = min(2*window, maxRetryPause)
		if err := u.clock.Sleep(ctx, pause); err != nil {
			return Updated{Tries: n}, fmt.Errorf("update %s: nothing was written: other writers changed it %d times: %w", u, n, err)
		}
		if base, was = now, then; pause > rereadAfter {
			if base, was, err = u.read(ctx); err != nil {
				return Updated{Tries: n}, err
			}
		}
	}
}

// attempt writes the new content, unless the change took so long that others may
// have updated the object many times: then it looks first, for the lineage must
// not outgrow what it holds between the write and the look that follows.
func (u *update) attempt(ctx context.Context, base snapshot, next Content, began time.Time) (cell.Outcome, snapshot, Content, error) {
	if elapsed(began, u.clock.Now()) > slowChange {
		now, then, err := u.read(ctx)
		if err != nil || !now.equals(base) {
			return cell.Lost, now, then, err
		}
	}
	return u.write(ctx, base, next)
}

const (
	// A try that was lost is followed by a pause between nothing and a window
	// that doubles with every try: full jitter.
	minRetryPause, maxRetryPause = 10 * time.Millisecond, time.Second
	// stale is the pause after which what was read before it is read again.
	rereadAfter = 20 * time.Millisecond
	// slow is a change that takes longer than this.
	slowChange = 250 * time.Millisecond
	// quick is how many bytes the slowest line carries within callTimeout.
	smallBody = 64 << 10
)

// read reads the object, or nothing.
func (u *update) read(ctx context.Context) (snapshot, Content, error) {
	now, content, err := u.readRetrying(ctx)
	if err != nil {
		return now, content, fmt.Errorf("update %s: nothing was written: %w", u, err)
	}
	return now, content, u.checkAllowed(now)
}

// allowed returns an error if the object may not be updated.
func (u *update) checkAllowed(now snapshot) error {
	switch {
	case !now.exists && !u.config.Create:
		return fmt.Errorf("update %s: %w: create it first, or allow its creation", u, bucket.ErrNotFound)
	case u.config.Fence > 0 && now.fence > u.config.Fence:
		return fmt.Errorf("update %s: %w: %d; the object was updated under %d by a later holder of the lock; nothing was written",
			u, ErrFenced, u.config.Fence, now.fence)
	}
	return nil
}

// look reads the object, again and again if the store does not answer.
func (u *update) readRetrying(ctx context.Context) (now snapshot, content Content, err error) {
	err = u.retryUnavailable(ctx, func() error {
		now, content, err = u.fetch(ctx)
		return err
	})
	return now, content, err
}

func (u *update) fetch(ctx context.Context) (snapshot, Content, error) {
	ctx, stop := u.clock.Limit(ctx, transferTimeout)
	defer stop()
	info, r, err := u.store.Get(ctx, u.ref)
	if errors.Is(err, bucket.ErrNotFound) {
		return snapshot{}, Content{}, nil
	}
	if err != nil {
		return snapshot{}, Content{}, err
	}
	defer func() { _ = r.Close() }() // it was only read from
	if info.Size > MaxUpdate {
		return snapshot{}, Content{}, fmt.Errorf("%w: it has %d bytes: an update holds at most %d in memory", ErrConfig, info.Size, MaxUpdate)
	}
	body, err := io.ReadAll(r)
	if err == nil && info.ETag == "" {
		err = bucket.ErrNoETag
	}
	if err != nil {
		return snapshot{}, Content{}, err
	}
	now := snapshot{exists: true, etag: info.ETag, lineage: lineageOf(info.Metadata)}
	return now, Content{Exists: true, Body: body, ContentType: info.ContentType, Headers: info.Headers, Metadata: userMetadata(info.Metadata)}, nil
}

// changed is what the change makes of the content.
func (u *update) applyChange(ctx context.Context, base snapshot, was Content) (Content, error) {
	mine := was
	mine.Body, mine.Metadata = bytes.Clone(was.Body), maps.Clone(was.Metadata)
	next, err := u.change(ctx, mine)
	switch {
	case err != nil:
		return Content{}, err
	case len(next.Body) > MaxUpdate:
		return Content{}, fmt.Errorf("update %s: %w: the new content has %d bytes: want at most %d", u, ErrConfig, len(next.Body), MaxUpdate)
	}
	next.Exists = base.exists
	return next, nil
}

func same(a, b Content) bool {
	return a.Exists && b.Exists && bytes.Equal(a.Body, b.Body) && a.ContentType == b.ContentType && a.Headers == b.Headers && maps.Equal(a.Metadata, b.Metadata)
}

// write sends the new content by the rules of [cell.Write], and returns what is
// there instead if it is Lost. No refusal is believed without a look, but in one
// case: where the object has no lineage that could tell, the update is Lost if all
// requests were refused, and otherwise ErrUnsure. Judge says what a look means.
func (u *update) write(ctx context.Context, base snapshot, next Content) (f cell.Outcome, now snapshot, then Content, err error) {
	id := u.nonce()[:idSize]
	metadata, fits := base.with(id, u.config.Fence).metadata(next.Metadata)
	if !fits {
		return cell.Lost, now, then, fmt.Errorf("update %s: %w: its metadata leave too little of the %d bytes that a store allows for the ids of updates; nothing was written: shorten the metadata",
			u, ErrConfig, maxMetadata)
	}
	w := cell.Write{Pace: u.retryPace(u.clock.Now()), Resolves: 1}
	w.Send = func(ctx context.Context) error { return u.put(ctx, base, next, metadata) }
	w.Look = func(ctx context.Context, answer error) (cell.Outcome, error) {
		if now, then, err = u.readRetrying(ctx); err != nil {
			return cell.Unclear, fmt.Errorf("%w; read it: %w", answer, err)
		}
		f, known := classifyUpdate(now, base, id, w.Unanswered == 0)
		if !known {
			return cell.Unclear, fmt.Errorf("%w; then other writers changed it", answer)
		}
		return f, nil
	}
	f, err = w.Run(ctx)
	switch {
	case err != nil && f == cell.Lost:
		return f, now, then, fmt.Errorf("update %s: %w", u, err)
	case err != nil:
		return f, now, then, fmt.Errorf("update %s: %w: %w", u, ErrUnsure, err)
	case f == cell.Lost:
		return f, now, then, u.checkAllowed(now)
	}
	return f, now, then, nil
}

func (u *update) put(ctx context.Context, base snapshot, next Content, metadata map[string]string) error {
	c := bucket.Condition{IfAbsent: true}
	if base.exists {
		c = bucket.Condition{IfMatch: base.etag}
	}
	limit := callTimeout
	if len(next.Body) > smallBody {
		limit = transferTimeout
	}
	ctx, stop := u.clock.Limit(ctx, limit)
	defer stop()
	_, err := u.store.Put(ctx, u.ref, bucket.Object{
		Body: bytes.NewReader(next.Body), Size: int64(len(next.Body)), ContentType: next.ContentType, Headers: next.Headers, Metadata: metadata,
	}, c)
	return err
}
