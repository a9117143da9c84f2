package doctor

import (
	"context"
	"errors"
	"fmt"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/event"
)

// ErrIgnored: the store accepts a write whose precondition does not hold. The
// error's text names the precondition.
var ErrIgnored = errors.New("the object store ignores a precondition")

// anETag looks like one, and is that of nothing that was written.
const anETag = "0123456789abcdef0123456789abcdef"

// Quick makes, in seven requests on one fresh key, the sequential part of what
// locks need: that conditional writes are refused where the condition does not
// hold, also on a key that is missing. Writers at once it leaves to [Examine].
//
// The error matches [ErrIgnored] if the store ignores a precondition. Others
// match one of package bucket's: ErrInvalid for a store that refuses conditional
// writes altogether. It needs the permissions to read, write and remove below
// ".pawl-doctor/" after prefix.
func Quick(ctx context.Context, store bucket.Store, bucketName, prefix string) (err error) {
	l := newLab(store, bucketName, prefix)
	defer func() {
		ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), cleanTime)
		defer stop()
		switch removing := l.removeAll(ctx); {
		case removing == nil:
		case err == nil:
			err = fmt.Errorf("cleaning up after a look at what the store honours: %w", removing)
		default:
			err = fmt.Errorf("%w; cleaning up failed, too: %w", err, removing)
		}
	}()
	if err := l.quick(ctx); err != nil {
		return fmt.Errorf("looking whether %s honours preconditions: %w", event.Quote("s3://"+bucketName), err)
	}
	return nil
}

func (l *lab) quick(ctx context.Context) error {
	ref := l.ref("quick")
	again, mismatched := content(), content()
	if landed, _, err := l.settle(ctx, ref, content(), bucket.Condition{IfMatch: anETag}); err != nil || landed {
		return errors.Join(err, l.ignores(landed, "If-Match on a missing key"))
	}
	absent := bucket.Condition{IfAbsent: true}
	first, err := l.accept(ctx, ref, content(), absent)
	if err == nil && first == "" {
		err = errNoETag
	}
	if err != nil {
		return unlabelled(err)
	}
	if landed, _, err := l.settle(ctx, ref, again, absent); err != nil || landed {
		return errors.Join(err, l.ignores(landed, "If-None-Match"))
	}
	kept := content()
	if _, err := l.accept(ctx, ref, kept, bucket.Condition{IfMatch: first}); err != nil {
		return unlabelled(err)
	}
	if landed, _, err := l.settle(ctx, ref, mismatched, bucket.Condition{IfMatch: first}); err != nil || landed {
		return errors.Join(err, l.ignores(landed, "If-Match"))
	}
	now, err := l.look(ctx, ref)
	switch {
	case err != nil:
		return err
	case now.text == again:
		return l.ignores(true, "If-None-Match")
	case now.text == mismatched:
		return l.ignores(true, "If-Match")
	case now.text != kept:
		return fmt.Errorf("%w: a read does not show what was just written", bucket.ErrInvalid)
	case now.etag == "":
		return unlabelled(errNoETag)
	}
	return nil
}

// ignores returns the error of a store that accepted what it should refuse.
func (l *lab) ignores(landed bool, precondition string) error {
	if !landed {
		return nil
	}
	return fmt.Errorf("%w: it ignores %s, so that nothing can be locked in it, nor updated safely: use a store that honours it (%q tells more)",
		ErrIgnored, precondition, "pawl doctor s3://"+l.bucket)
}
