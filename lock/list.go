package lock

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/pawlhq/pawl/event"
)

// Status is one lease object of a listing.
type Status struct {
	Key string
	// Record is the content of the object. It is empty if Err is set.
	Record Record
	// Written is the time of the last acquisition, renewal or release by the store's clock.
	Written time.Time
	// Err matches ErrForeign if the object is not a lease, and ErrNewer if a newer Pawl wrote it.
	// Any other error, for example bucket.ErrDenied or bucket.ErrUnavailable, is the reason why the
	// object could not be read.
	Err error
}

// List yields the objects below a prefix with their records, in key order. An error of the listing
// ends the sequence. If an object cannot be read, its Status has the error.
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
