package lock

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/pawlhq/pawl/event"
)

// Status is one lease object.
type Status struct {
	Key string
	// Record is what it says. It is empty with an Err.
	Record Record
	// Written is when the store has it that the object was written last: by an
	// acquisition, a renewal or a release.
	Written time.Time
	// Err matches ErrForeign for an object that is no lease, and ErrNewer for one
	// of a newer Pawl. Any other says why the object could not be read:
	// bucket.ErrDenied, say, or bucket.ErrUnavailable.
	Err error
}

// List yields the objects below a prefix, in key order, with what each says as a
// lease. An error of the listing ends it; that of one object is in its Status.
func (b *Bucket) List(ctx context.Context, prefix string) iter.Seq2[Status, error] {
	return func(yield func(Status, error) bool) {
		for info, err := range b.store.List(ctx, b.name, prefix, "") {
			if err != nil {
				yield(Status{}, fmt.Errorf("list the locks below %s: %w", event.Quote("s3://"+b.name+"/"+prefix), err))
				return
			}
			o := b.object(b.name, info.Key)
			now, err := o.readOnce(ctx)
			switch {
			case err != nil && ctx.Err() != nil:
				yield(Status{}, err)
				return
			case err == nil && !now.exists:
				continue // deleted meanwhile
			}
			if !yield(Status{Key: info.Key, Record: now.rec, Written: info.ModTime, Err: err}, nil) {
				return
			}
		}
	}
}
