package lock

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/pawlhq/pawl/event"
)

// Status is the state of one lease object.
type Status struct {
	Key string
	// Record is empty if Err is set.
	Record Record
	// Written is the time of the last write by the store's clock.
	Written time.Time
	// Err is the reason why the object could not be read. It is ErrForeign for an object that is
	// not a lease, and ErrNewer for a lease of a newer Pawl.
	Err error
}

// List yields the leases below a prefix in key order. An error of the listing ends the sequence.
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
				continue
			}
			if !yield(Status{Key: info.Key, Record: now.rec, Written: info.ModTime, Err: err}, nil) {
				return
			}
		}
	}
}
