package bucket

import (
	"context"
	"errors"
	"time"

	"github.com/pawlhq/pawl/event"
)

// Expirer is a [Store] whose writes can have a deadline.
type Expirer interface {
	// PutSigned is Put with a request signed at the time signed. If it starts after signed +
	// valid by the store's clock, the store rejects it with ErrExpired. The upload takes at most
	// valid.
	PutSigned(ctx context.Context, ref event.Object, o Object, c Condition, signed time.Time, valid time.Duration) (etag string, err error)
	// StoreTime returns the time for a signature when the caller's clock shows now. The store's
	// clock has already reached it, so the request expires at most valid after this call, even if
	// the caller's clock is wrong. Before the first response of the store, StoreTime returns now.
	StoreTime(now time.Time) time.Time
}

// ErrExpired is returned if the request arrived after its expiry. Nothing was written; retry with
// a new signature.
var ErrExpired = errors.New("the signed request has expired")
