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

// Content is the content of an object.
type Content struct {
	// Exists is false if the object is missing. It is ignored in the result of a change.
	Exists      bool
	Body        []byte
	ContentType string
	Headers     bucket.Headers
	// Metadata is the user's metadata, without Pawl's.
	Metadata map[string]string
}

// UpdateConfig configures an update. The zero UpdateConfig is valid.
type UpdateConfig struct {
	// Create gives the change an empty Content if the object is missing. Otherwise this is
	// [bucket.ErrNotFound].
	Create bool
	// Fence is the token of the lease that protects the object, or 0. The update fails if an update
	// with a higher token changed the bytes. The token is lost if the object is deleted, or if
	// another program writes it.
	Fence int64
	// Tries is the maximum number of attempts. Default 50.
	Tries int
}

const (
	defaultTries = 50
	// MaxUpdate is in bytes.
	MaxUpdate = 64 << 20
)

var (
	// ErrContended is returned if other writers changed the object in every attempt. Nothing was
	// written.
	ErrContended = errors.New("other writers changed the object during every attempt")
	// ErrFenced is returned if an update had a higher fencing token. Nothing was written.
	ErrFenced = errors.New("the fencing token is too old")
	// ErrUnsure is returned if it is unknown whether the update was applied.
	ErrUnsure = errors.New("unknown whether the update was applied: inspect the object")
)

// Updated is the result of an update.
type Updated struct {
	// Written is false if the content was unchanged.
	Written bool
	// Tries is the number of attempts.
	Tries int
	// Content is the result of the change.
	Content Content
}

// Update reads an object, changes it, and writes it if it is unchanged since the read. Otherwise it
// starts again, so change may run several times. If change fails, nothing is written. Unchanged
// content is not written either, unless the Fence is higher than all earlier ones.
//
// An update recognizes its own id in the object's metadata, so it is not lost or applied twice if
// responses are lost. There are two exceptions. If a creation's response is lost and the object is
// deleted, Update applies the update again. The ETag depends on the bytes only. If an update leaves
// them unchanged or restores earlier ones, another writer can overwrite its metadata and Fence. If
// a response is also lost, Update can mistake another writer's update for its own. Let every update
// write something new, such as a number or the token.
func (b *Bucket) Update(ctx context.Context, key string, change func(context.Context, Content) (Content, error), c UpdateConfig) (Updated, error) {
	return b.update(ctx, key, change, nil, c)
}

// update calls encodeFence if the bytes are unchanged but the fence is higher.
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

type update struct {
	*env
	ref    event.Object
	config UpdateConfig
	change func(context.Context, Content) (Content, error)
	// encodeFence makes the bytes differ for each fence, but keeps their meaning. It may be nil.
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

// attempt first reads the object again if the change took long, because the lineage has few ids.
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
	// The pause after a lost attempt is random between 0 and a window, which doubles.
	minRetryPause, maxRetryPause = 10 * time.Millisecond, time.Second
	// rereadAfter is the shortest pause after which the object is read again.
	rereadAfter = 20 * time.Millisecond
	// slowChange is the shortest change after which the object is read again.
	slowChange = 250 * time.Millisecond
	// smallBody bytes fit into callTimeout on a slow connection.
	smallBody = 64 << 10
)

func (u *update) read(ctx context.Context) (snapshot, Content, error) {
	now, content, err := u.readRetrying(ctx)
	if err != nil {
		return now, content, fmt.Errorf("update %s: nothing was written: %w", u, err)
	}
	return now, content, u.checkAllowed(now)
}

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
	defer func() { _ = r.Close() }()
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

// Without a lineage, a read cannot show the outcome. Then the update is Lost if the store refused
// all requests, and otherwise ErrUnsure.
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
