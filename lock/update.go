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

// Content is the content that an update reads and writes.
type Content struct {
	// Exists is false if the object is missing. The returned content of a change may have any value
	// here.
	Exists      bool
	Body        []byte
	ContentType string
	Headers     bucket.Headers
	// Metadata is the user's metadata. It does not contain Pawl's metadata.
	Metadata map[string]string
}

// UpdateConfig configures an update. The zero UpdateConfig is valid.
type UpdateConfig struct {
	// Create creates a missing object: the change gets an empty Content. If Create is false, a
	// missing object is an error that matches [bucket.ErrNotFound].
	Create bool
	// Fence is the token of the lease that protects the object. Zero means no lease. The update
	// fails if an earlier update under a higher token changed the bytes of the object. Pawl stores
	// the highest token with the object. The token is lost if the object is deleted, or if another
	// program writes it.
	Fence int64
	// Tries is the maximum number of attempts while other writers change the object. Default 50.
	Tries int
}

const (
	defaultTries = 50
	// MaxUpdate is the maximum size of an updated object, in bytes.
	MaxUpdate = 64 << 20
)

var (
	// ErrContended is returned if other writers changed the object during every attempt. Nothing
	// was written.
	ErrContended = errors.New("other writers changed the object during every attempt")
	// ErrFenced is returned if the object was updated under a higher fencing token. Nothing was
	// written.
	ErrFenced = errors.New("the fencing token is too old")
	// ErrUnsure is returned if it is unknown whether the update was applied.
	ErrUnsure = errors.New("unknown whether the update was applied: inspect the object")
)

// Updated is the result of an update.
type Updated struct {
	// Written is false if the content was unchanged, so that nothing was written.
	Written bool
	// Tries is the number of attempts.
	Tries int
	// Content is the content that the change returned.
	Content Content
}

// Update reads an object, changes it, and writes it if it is unchanged since the read. Otherwise it
// starts again, so change may run several times. Even if responses are
// lost, an update is not lost or applied twice, except in the cases below. The metadata of the object contain the ids of the last 48 updates, or as many
// as fit, and an update recognizes its own id. If the response to an update
// that creates the object is lost, and the object is then deleted, Update applies the update again.
//
// Update sends 2 requests, a GET and a PUT. It does not write unchanged content, unless the Fence
// is higher than that of all earlier updates. If change returns an error, Update returns that error
// and writes nothing.
//
// Update keeps the object in memory. An ETag depends on the bytes only. Suppose an update leaves
// the bytes unchanged, or restores earlier bytes. Then a writer that read the object earlier can
// still overwrite the update's metadata or its higher Fence. If a response is also lost, Update can
// mistake another writer's update for its own. Let every update write something new, such as a
// number or the token.
func (b *Bucket) Update(ctx context.Context, key string, change func(context.Context, Content) (Content, error), c UpdateConfig) (Updated, error) {
	return b.update(ctx, key, change, nil, c)
}

// update is Update. If the bytes are unchanged but the fence is higher, it calls respell to get different
// bytes.
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
	// encodeFence encodes the fence in a body without changing its meaning, so that the bytes
	// differ for each fence. It may be nil.
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

// attempt writes the new content. If the change took long, it reads the object first. Otherwise
// other writers may have updated the object more often than the lineage has ids.
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
	// Shortest and longest window of the pause after a lost attempt. The pause is random between 0
	// and the window, which doubles with every attempt (full jitter).
	minRetryPause, maxRetryPause = 10 * time.Millisecond, time.Second
	// rereadAfter is the shortest pause after which an attempt reads the object again.
	rereadAfter = 20 * time.Millisecond
	// slowChange is the shortest duration of a change after which an attempt reads the object again
	// before it writes.
	slowChange = 250 * time.Millisecond
	// smallBody is the number of bytes that a slow connection sends within callTimeout.
	smallBody = 64 << 10
)

// read reads the object. A missing object is an empty snapshot.
func (u *update) read(ctx context.Context) (snapshot, Content, error) {
	now, content, err := u.readRetrying(ctx)
	if err != nil {
		return now, content, fmt.Errorf("update %s: nothing was written: %w", u, err)
	}
	return now, content, u.checkAllowed(now)
}

// checkAllowed returns an error if this update must not change the object.
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

// readRetrying reads the object. It retries while the store is unavailable.
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

// write sends the new content by the rules of [cell.Write]. If the update is Lost, it also returns
// the current object. After a refusal it reads the object to learn the outcome. If the object has
// no lineage, a read cannot show it. Then the update is Lost if the store refused all requests, and
// otherwise write returns ErrUnsure. See classifyUpdate.
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
