package lock

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/doctor"
	"github.com/pawlhq/pawl/event"
)

// object is one lease object.
type object struct {
	*world
	ref event.Object
}

// mediaType is that of a lease object.
const mediaType = "application/json"

// callTime bounds one request. A lease that is shorter bounds it by itself.
const callTime = 10 * time.Second

// transferTime is what MaxUpdate bytes may take.
const transferTime = 5 * time.Minute

// patience is for how long a store may give no answer before one gives up.
const patience = time.Minute

// persist asks again as long as the store gives no answer, for a minute at most.
func (w *world) persist(ctx context.Context, ask func() error) error {
	pauses := w.retries()
	var before error // which says more than that of a call that was cut off
	for began := w.clock.Now(); ; {
		err := ask()
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("%w: %w", cmp.Or(before, err), context.Cause(ctx))
		case !errors.Is(err, bucket.ErrUnavailable), w.clock.Now().Sub(began) > patience:
			return err
		}
		if stopped := w.clock.Sleep(ctx, pauses.next()); stopped != nil {
			return fmt.Errorf("%w: %w", err, stopped)
		}
		before = err
	}
}

// get reads the lease.
func (o *object) get(ctx context.Context) (version, error) {
	ctx, stop := o.clock.Limit(ctx, callTime)
	defer stop()
	info, body, err := o.store.Get(ctx, o.ref)
	if errors.Is(err, bucket.ErrNotFound) {
		return version{}, nil
	}
	if err != nil {
		return version{}, err
	}
	b, err := io.ReadAll(io.LimitReader(body, maxRecord+1))
	_ = body.Close() // what it could say, reading has said
	if err == nil && info.ETag == "" {
		err = errNoETag
	}
	if err != nil {
		return version{}, err
	}
	if len(b) > maxRecord {
		return version{}, fmt.Errorf("%s: %w: it has more than %d bytes", o, ErrForeign, maxRecord)
	}
	rec, err := decode(b)
	if err != nil {
		return version{}, fmt.Errorf("%s: %w; it was left as it is: choose another key for the lock", o, err)
	}
	return version{exists: true, etag: info.ETag, rec: rec}, nil
}

// listing returns the objects below a prefix: of one lock, so few that it takes no
// longer than another request.
func (w *world) listing(ctx context.Context, name, prefix string) (found []bucket.Info, err error) {
	ctx, stop := w.clock.Limit(ctx, callTime)
	defer stop()
	for info, err := range w.store.List(ctx, name, prefix, "") {
		if err != nil {
			return nil, err
		}
		found = append(found, info)
	}
	return found, nil
}

// put writes the lease once, if the object still is base.
func (o *object) put(ctx context.Context, base version, body []byte) (etag string, err error) {
	ctx, stop := o.clock.Limit(ctx, callTime)
	defer stop()
	c := bucket.Condition{IfAbsent: true}
	if base.exists {
		c = bucket.Condition{IfMatch: base.etag}
	}
	etag, err = o.store.Put(ctx, o.ref, bucket.Object{Body: bytes.NewReader(body), Size: int64(len(body)), ContentType: mediaType}, c)
	if err == nil && etag == "" {
		err = errNoETag
	}
	return etag, err
}

// errNoETag is the error of an answer without an ETag: what replaces the object
// would be written whatever is there.
var errNoETag = fmt.Errorf("%w: the store tells no ETag of the object, or something between takes it away", doctor.ErrIgnored)

func (o *object) String() string { return o.ref.String() }

// write is one version of a lease on its way to the store. It is sent until it
// is known what became of it.
type write struct {
	*object
	base version // what it replaces
	next Record
	// sent is no later than when it landed, if it did.
	sent time.Time
	// loose says that a copy may be on its way.
	loose bool
	// bound is that of the last request.
	bound time.Duration
}

func (o *object) write(base version, next Record) *write {
	return &write{object: o, base: base, next: next}
}

// found is what became of a write.
type found struct {
	fate fate
	now  version   // what is there, if it is known
	seen time.Time // it was there then, or later
}

// run sends the write, and sends it again as long as nothing has changed. It
// returns what became of it, or an error if that is not known when ctx ends, or
// if the store refuses it for good. It can be run again.
//
//	answer to the PUT       what GET then shows          so
//	200                     (not asked)                  landed
//	denied, no bucket…      (not asked)                  that error: nothing was written
//	anything else           one's own nonce              landed: also after 409, 412 and 5xx
//	                        it among the ones before     superseded: landed, and another has written since
//	                        what was there before        open: sent again, the same bytes
//	                        anything else                lost: this write will never land
//
// The lease runs from before its write was sent. A look that shows that it has
// not landed moves that on to before the look.
func (w *write) run(ctx context.Context) (found, error) {
	body := w.next.encode()
	if w.sent.IsZero() {
		w.sent = w.clock.Now()
	}
	pauses := w.retries()
	began := w.clock.Now()
	for {
		etag, err := w.send(ctx, body)
		if err == nil {
			w.loose = false
			return found{landed, version{exists: true, etag: etag, rec: w.next}, w.clock.Now()}, nil
		}
		if !w.loose && permanent(err) {
			return found{}, fmt.Errorf("writing the lock %s: %w", w, err)
		}
		w.loose = true
		f, sent, lookErr := w.look(ctx, err)
		if lookErr != nil || f.fate != open {
			w.loose = lookErr != nil
			return f, lookErr
		}
		if permanent(err) || w.clock.Now().Sub(began) > patience {
			return found{}, fmt.Errorf("writing the lock %s: %w", w, err)
		}
		w.base, w.sent = f.now, sent
		if stopped := w.clock.Sleep(ctx, pauses.next()); stopped != nil {
			return found{}, fmt.Errorf("writing the lock %s: %w: %w", w, err, stopped)
		}
	}
}

// send writes once.
func (w *write) send(ctx context.Context, body []byte) (etag string, err error) {
	ctx, stop := w.hurry(ctx)
	defer stop()
	asked := w.clock.Now()
	etag, err = w.put(ctx, w.base, body)
	if err == nil {
		w.pace.Store(int64(w.clock.Now().Sub(asked)))
	}
	return etag, err
}

// hurry bounds one request: the first by an eighth of the lease, but by one or two
// seconds, and each further one by twice as long. So one that is never answered
// leaves the time to look and to send it again, in a lease of 3 seconds or more. A
// store that is slow gets twice as long as it took for the last write.
func (w *write) hurry(ctx context.Context) (context.Context, context.CancelFunc) {
	first := min(max(w.next.ttl()/8, time.Second), 2*time.Second)
	w.bound = min(max(2*w.bound, first, time.Duration(2*w.pace.Load())), callTime)
	return w.clock.Limit(ctx, w.bound)
}

// look reads until it knows what is there. It also returns when it asked for that.
func (w *write) look(ctx context.Context, answer error) (f found, asked time.Time, err error) {
	err = w.persist(ctx, func() error {
		asked = w.clock.Now()
		ctx, stop := w.hurry(ctx)
		defer stop()
		now, err := w.get(ctx)
		f = found{classify(now, w.base, w.next.Nonce), now, w.clock.Now()}
		return err
	})
	if err != nil {
		return found{}, asked, fmt.Errorf("writing the lock %s: %w, and looking: %w", w, answer, err)
	}
	return f, asked, nil
}

// permanent reports that a store refused a request, and will again.
func permanent(err error) bool {
	return errors.Is(err, bucket.ErrDenied) || errors.Is(err, bucket.ErrNoBucket) || errors.Is(err, bucket.ErrInvalid)
}
