package lock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/cell"
	"github.com/pawlhq/pawl/event"
)

// place is where a lease is kept: in an object, or in a register.
type place struct {
	*world
	cell cell.Cell
	ref  event.Object // the object; zero for a register
}

// object is a lease object.
func (w *world) object(name, key string) place {
	ref := event.Object{Bucket: name, Key: key}
	return place{w, &bucket.Cell{Store: w.store, Ref: ref, ContentType: mediaType, Max: maxRecord}, ref}
}

func (p *place) String() string { return p.cell.String() }

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
	pace := w.pacing()
	var before error // which says more than that of a call that was cut off
	for {
		err := ask()
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("%w: %w", cmp.Or(before, err), context.Cause(ctx))
		case !errors.Is(err, cell.ErrUnavailable):
			return err
		}
		if stop := pace(ctx, 0, err); stop != nil {
			return stop
		}
		before = err
	}
}

// pacing returns the Pace of a [cell.Write]: a pause, as long as the store gives no
// clear answer, for a minute at most.
func (w *world) pacing() func(context.Context, int, error) error {
	pauses, began := w.retries(), w.clock.Now()
	return func(ctx context.Context, _ int, answer error) error {
		if w.clock.Now().Sub(began) > patience {
			return answer
		}
		if stopped := w.clock.Sleep(ctx, pauses.next()); stopped != nil {
			return fmt.Errorf("%w: %w", answer, stopped)
		}
		return nil
	}
}

// get reads the lease.
func (p *place) get(ctx context.Context) (version, error) {
	ctx, stop := p.clock.Limit(ctx, callTime)
	defer stop()
	v, err := p.cell.Read(ctx)
	if err != nil {
		return version{}, err
	}
	return p.parse(v)
}

// parse returns the lease that a value holds.
func (p *place) parse(v cell.Value) (version, error) {
	switch {
	case v.Version == "":
		return version{}, nil
	case len(v.Body) > maxRecord:
		return version{}, fmt.Errorf("%s: %w: it has more than %d bytes", p, ErrForeign, maxRecord)
	}
	rec, err := decode(v.Body)
	if err != nil {
		return version{}, fmt.Errorf("%s: %w; it was left as it is: choose another key for the lock", p, err)
	}
	return version{exists: true, etag: v.Version, rec: rec}, nil
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

// write is one version of a lease on its way to its place, by the rules of
// [cell.Write]. No refusal is trusted, and classify says what a look means.
//
// The lease runs from before its write was sent. A look that shows that it has
// not landed moves that on to before the look.
type write struct {
	*place
	sending cell.Write
	base    version // what it replaces
	next    Record
	body    []byte
	// sent is no later than when it landed, if it did.
	sent time.Time
	// unclear: the last run ended without the write's fate; a copy may land yet.
	unclear bool
	// bound is that of the last request.
	bound time.Duration
	found found
}

// found is what became of a write.
type found struct {
	fate cell.Fate
	now  version   // the lease as the last answer showed it
	seen time.Time // when that answer came
}

func (p *place) write(base version, next Record) *write {
	w := &write{place: p, base: base, next: next, body: next.encode()}
	w.sending = cell.Write{Send: w.send, Look: w.look, Resolves: 1}
	return w
}

// run sends the write until its fate is known. It returns what became of it, or an
// error if that is not known when ctx ends, or if the store refuses it for good. It
// can be run again.
func (w *write) run(ctx context.Context) (found, error) {
	if w.sent.IsZero() {
		w.sent = w.clock.Now()
	}
	w.sending.Pace = w.pacing()
	fate, err := w.sending.Run(ctx)
	w.unclear = fate == cell.Unclear
	if err != nil {
		return found{}, fmt.Errorf("writing the lock %s: %w", w, err)
	}
	w.found.fate = fate
	return w.found, nil
}

// send writes once, if the lease still is base.
func (w *write) send(ctx context.Context) error {
	ctx, stop := w.hurry(ctx)
	defer stop()
	asked := w.clock.Now()
	etag, err := w.cell.Write(ctx, w.base.etag, w.body)
	if err == nil {
		now := w.clock.Now()
		w.pace.Store(int64(now.Sub(asked)))
		w.found = found{now: version{exists: true, etag: etag, rec: w.next}, seen: now}
	}
	return err
}

// look reads until it knows what is there. If nothing has changed, that is what the
// next request replaces.
func (w *write) look(ctx context.Context, answer error) (cell.Fate, error) {
	var asked time.Time
	err := w.persist(ctx, func() (err error) {
		asked = w.clock.Now()
		ctx, stop := w.hurry(ctx)
		defer stop()
		w.found.now, err = w.get(ctx)
		w.found.seen = w.clock.Now()
		return err
	})
	if err != nil {
		return cell.Unclear, fmt.Errorf("%w, and looking: %w", answer, err)
	}
	fate := classify(w.found.now, w.base, w.next.Nonce)
	if fate == cell.Unclear {
		w.base, w.sent = w.found.now, asked
	}
	return fate, nil
}

// hurry bounds one request: the first by clamp(TTL/8, 1 s, 2 s), and each further
// one by twice the bound before, up to callTime. So a request that is never answered
// leaves the time to look and to send it again, in a lease of 3 seconds or more. A
// slow store gets at least twice what it took for the last write.
func (w *write) hurry(ctx context.Context) (context.Context, context.CancelFunc) {
	first := min(max(w.next.ttl()/8, time.Second), 2*time.Second)
	w.bound = min(max(2*w.bound, first, time.Duration(2*w.pace.Load())), callTime)
	return w.clock.Limit(ctx, w.bound)
}

// permanent reports that a store refused a request, and will again.
func permanent(err error) bool { return errors.Is(err, cell.ErrRefused) }
