package lock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/cell"
	"github.com/pawlhq/pawl/event"
)

type leaseCell struct {
	*env
	cell cell.Cell
	ref  event.Object // zero for a register
}

const mediaType = "application/json"

func (e *env) object(name, key string) leaseCell {
	ref := event.Object{Bucket: name, Key: key}
	return leaseCell{e, &bucket.Cell{Store: e.store, Ref: ref, ContentType: mediaType, Max: maxRecord}, ref}
}

func (l *leaseCell) String() string { return l.cell.String() }

type version struct {
	exists bool
	etag   string // object's ETag or register's version
	rec    Record
}

func (v *version) free() bool { return !v.exists || v.rec.State == Released }

// observation is a version and the arrival time of the response.
type observation struct {
	version
	at time.Time
}

func (l *leaseCell) readOnce(ctx context.Context) (observation, error) {
	ctx, stop := l.clock.Limit(ctx, callTimeout)
	defer stop()
	value, err := l.cell.Read(ctx)
	if err != nil {
		return observation{}, err
	}
	v, err := l.parse(value)
	return observation{v, l.clock.Now()}, err
}

func (l *leaseCell) read(ctx context.Context) (now observation, err error) {
	err = l.retryUnavailable(ctx, func() error {
		now, err = l.readOnce(ctx)
		return err
	})
	if err != nil {
		return observation{}, fmt.Errorf("read the lock %s: %w", l, err)
	}
	return now, nil
}

func (l *leaseCell) parse(v cell.Value) (version, error) {
	switch {
	case v.Version == "":
		return version{}, nil
	case len(v.Body) > maxRecord:
		return version{}, fmt.Errorf("%s: %w: it has more than %d bytes", l, ErrForeign, maxRecord)
	}
	rec, err := decode(v.Body)
	if err != nil {
		return version{}, fmt.Errorf("%s: %w; the object was not changed: choose another key for the lock", l, err)
	}
	return version{exists: true, etag: v.Version, rec: rec}, nil
}

// classify returns the outcome of a write that replaces base. It compares nonces, because a read
// may return the ETag of the previous version. A lost write stays lost, because every version has a
// unique ETag. A late creation can land only after a deletion.
func classify(now, base version, nonce string) cell.Outcome {
	switch {
	case now.exists && now.rec.Nonce == nonce:
		return cell.Landed
	case now.exists && slices.Contains(now.rec.Before, nonce):
		return cell.Superseded
	case !now.exists && !base.exists, now.exists && base.exists && now.rec.Nonce == base.rec.Nonce:
		return cell.Unclear
	}
	return cell.Lost
}

func (l *leaseCell) show(ctx context.Context) (observation, error) {
	now, err := l.readOnce(ctx)
	if err == nil && !now.exists {
		err = fmt.Errorf("%w: the lock has never been held", bucket.ErrNotFound)
	}
	return now, err
}

func (l *leaseCell) forceRelease(ctx context.Context, token int64) (Record, error) {
	now, err := l.show(ctx)
	for err == nil {
		switch {
		case now.free():
			return Record{}, fmt.Errorf("release the lock %s: %w: the lock is not held", l, ErrConfig)
		case now.rec.Token != token:
			return Record{}, fmt.Errorf("release the lock %s: %w: it is held under the token %d, not under %d, by %s", l, ErrConfig, now.rec.Token, token, now.rec.describeHolder())
		}
		r, err := l.write(now.version, now.rec.forced(l.nonce(), l.clock.Now())).run(ctx)
		if err != nil {
			return Record{}, err
		}
		if r.outcome != cell.Lost {
			return r.rec, nil
		}
		now = r.observation // another process has renewed it or taken it over
	}
	return Record{}, fmt.Errorf("release the lock %s: %w", l, err)
}

func permanent(err error) bool { return errors.Is(err, cell.ErrRefused) }
