package bucket

import (
	"context"
	"errors"
	"time"

	"github.com/pawlhq/pawl/event"
)

// Expirer is a further ability of a [Store]: writes that cannot begin too late.
type Expirer interface {
	// PutSigned is Put by a request that was signed at a time, and that the store
	// refuses with ErrExpired if it begins later than valid after that, by the
	// store's own clock. What has begun before ends within valid, too.
	PutSigned(ctx context.Context, ref event.Object, o Object, c Condition, signed time.Time, valid time.Duration) (etag string, err error)
	// StoreTime returns the time with which to sign a request when the caller's clock
	// shows now. The store's own clock has reached that time: a request that is signed
	// with it expires no later than valid after StoreTime was called, however wrong the
	// caller's clock is. Before the store's first answer it returns now.
	StoreTime(now time.Time) time.Time
}

// ErrExpired: the request came too late, and wrote nothing. Sign it anew.
var ErrExpired = errors.New("the signed request has expired")
