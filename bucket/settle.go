package bucket

import (
	"context"
	"errors"
	"fmt"
)

// settle looks at the object after an answer that leaves open whose change was
// made, if any. It says whether to send again; the error is then the one to
// return if there is no further try. An error matches one kind alone: of the
// others only the words are kept.
func (c *change) settle(ctx context.Context, answer error) (again bool, err error) {
	refused := errors.Is(answer, ErrPrecondition)
	if !refused {
		c.loose++
	}
	now, exists, lookErr := c.look(ctx)
	switch {
	case lookErr != nil && refused:
		// The refusal may be of a copy of what had landed.
		c.loose += c.accounts
		return false, fmt.Errorf("%w: %v, and looking failed: %v", ErrUnclear, answer, lookErr)
	case lookErr != nil:
		return false, fmt.Errorf("%w, and looking failed: %v", unclear(answer), lookErr)
	case c.mine(now, exists):
		// A refusal does not tell which copy had landed: one of this request's
		// own, if there was a retry on its way, or an earlier loose one.
		if !refused {
			c.loose -= c.accounts
		}
		return false, nil
	case refused || !c.unchanged(now, exists):
		return false, fmt.Errorf("%w: %v", ErrMoved, answer)
	}
	return true, unclear(answer)
}

// unclear makes an error that a driver left without a kind one that is unclear.
func unclear(err error) error {
	if errors.Is(err, ErrUnclear) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrUnclear, err)
}

func (c *change) look(ctx context.Context) (now Info, exists bool, err error) {
	now, err = c.store.Head(ctx, c.ref)
	if errors.Is(err, ErrNotFound) {
		return Info{}, false, nil
	}
	return now, err == nil, err
}

// unchanged says whether the object is the very one that was pinned. It looks
// closer than a condition can: at more than the ETag.
func (c *change) unchanged(now Info, exists bool) bool {
	p := c.pinned
	return exists == c.exists && now.ETag == p.ETag && now.VersionID == p.VersionID &&
		now.ModTime.Equal(p.ModTime) && now.Metadata[metaNonce] == p.Metadata[metaNonce]
}
