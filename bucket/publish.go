package bucket

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// tries is how often a change is sent, at most.
const tries = 3

// Publish writes the object if it still is what was pinned. body is opened
// afresh for each try and closed after it; one that is an [io.Seeker] is sent
// with a signed digest. size is its exact length in bytes.
//
// The Result counts with an error as well. ErrMoved: back to Pin. ErrConflict,
// ErrUnclear and errors of body and of the context: try again later. ErrNoBucket,
// ErrDenied and ErrInvalid: a person must act.
func (o *Output) Publish(ctx context.Context, stamp Stamp, body func() (io.ReadCloser, error), size int64, contentType string) (Result, error) {
	if err := stamp.validate(); err != nil {
		return Result{Sure: true}, fmt.Errorf("publishing %s: %w", name(o.ref), err)
	}
	c := Condition{IfAbsent: true}
	if o.exists {
		c = Condition{IfMatch: o.pinned.ETag}
	}
	ch := change{
		Output: o,
		send: func(ctx context.Context) (bool, error) {
			r, err := body()
			if err != nil {
				return false, fmt.Errorf("opening what is to be written: %w", err)
			}
			_, err = o.store.Put(ctx, o.ref, Object{Body: r, Size: size, ContentType: contentType, Metadata: stamp.metadata(size)}, c)
			_ = r.Close() // what it could say, reading has said
			return true, err
		},
		mine: func(now Info, exists bool) bool {
			return exists && now.Metadata[metaNonce] == stamp.Nonce && whole(now)
		},
		accounts: 1,
	}
	return ch.run(ctx, "publishing")
}

// Remove removes the object if it still is what was pinned, and sends nothing
// if there was none. Errors are those of [Output.Publish].
func (o *Output) Remove(ctx context.Context) (Result, error) {
	if !o.exists {
		return Result{Sure: true}, nil
	}
	ch := change{
		Output: o,
		send: func(ctx context.Context) (bool, error) {
			return true, o.store.Delete(ctx, o.ref, Condition{IfMatch: o.pinned.ETag})
		},
		mine: func(_ Info, exists bool) bool { return !exists },
		// Nothing shows who removed it: a loose removal stays loose.
		accounts: 0,
	}
	return ch.run(ctx, "removing")
}

// change is a publish or a removal under way.
type change struct {
	*Output
	// send sends the request once. It returns false if it did not come to that.
	send func(context.Context) (sent bool, err error)
	// mine says whether what HEAD shows is what this change makes.
	mine func(now Info, exists bool) bool
	// accounts is how many loose requests are accounted for by that.
	accounts int

	sent  bool
	loose int
}

// run follows the tables of [Output].
func (c *change) run(ctx context.Context, what string) (Result, error) {
	err := errUsed
	if !c.used {
		c.used = true
		err = c.try(ctx)
	}
	if err != nil {
		err = fmt.Errorf("%s %s: %w", what, name(c.ref), err)
	}
	return Result{Sent: c.sent, Sure: c.loose == 0}, err
}

func (c *change) try(ctx context.Context) error {
	var last error
	for range tries {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		sent, err := c.send(ctx)
		c.sent = c.sent || sent
		switch {
		case err == nil, !sent:
			return err
		case errors.Is(err, ErrConflict):
			last = err
			continue
		case errors.Is(err, ErrNoBucket), errors.Is(err, ErrDenied), errors.Is(err, ErrInvalid):
			return err
		}
		again, err := c.settle(ctx, err)
		if !again {
			return err
		}
		last = err
	}
	return last
}
