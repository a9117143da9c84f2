package bucket

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/pawlhq/pawl/cell"
)

// tries limits the requests of one change.
const tries = 3

// Publish writes the object if it still has the pinned state. It calls body for each try and
// closes the result; an [io.Seeker] gets a signed digest. size is the exact length of the body in
// bytes.
//
// After ErrOutputChanged, pin the output again. After ErrNoBucket, ErrDenied or ErrInvalid an
// operator must act. Other errors are temporary.
func (o *Output) Publish(ctx context.Context, stamp Stamp, body func() (io.ReadCloser, error), size int64, contentType string) (Result, error) {
	return o.PublishCopy(ctx, stamp, Source{}, 0, body, size, contentType)
}

// PublishCopy is Publish with the content of another object. If the store is a [Copier] and
// methods has a method for this size, the store copies the object. The methods must honour
// conditions. If the store refuses the copy, PublishCopy sends body. A changed source also
// returns ErrOutputChanged.
func (o *Output) PublishCopy(ctx context.Context, stamp Stamp, from Source, methods CopyMethod, body func() (io.ReadCloser, error), size int64, contentType string) (Result, error) {
	if err := stamp.validate(); err != nil {
		return Result{Sure: true}, fmt.Errorf("publishing %s: %w", name(o.ref), err)
	}
	c := Condition{IfAbsent: true}
	if o.exists {
		c = Condition{IfMatch: o.pinned.ETag}
	}
	object := Object{Size: size, ContentType: contentType, Metadata: stamp.metadata(size)}
	copier, method := o.copier(methods, size)
	send := func(ctx context.Context) error {
		if method != 0 {
			_, err := copier.Copy(ctx, method, from, o.ref, object, c)
			if errors.Is(err, ErrUnavailable) {
				return fmt.Errorf("%w: preparing the copy: %w", cell.ErrUnsent, err)
			}
			if !errors.Is(err, ErrDenied) && !errors.Is(err, ErrInvalid) {
				return err
			}
			method = 0 // the store may accept a PUT
		}
		r, err := body()
		if err != nil {
			return fmt.Errorf("%w: opening the output body: %w", cell.ErrUnsent, err)
		}
		object := object
		object.Body = r
		_, err = o.store.Put(ctx, o.ref, object, c)
		_ = r.Close()
		return err
	}
	isOurs := func(now Info, exists bool) bool {
		return exists && now.Metadata[metaNonce] == stamp.Nonce && isComplete(now)
	}
	return o.change(ctx, "publishing", send, isOurs, 1)
}

func (o *Output) copier(methods CopyMethod, size int64) (Copier, CopyMethod) {
	c, ok := o.store.(Copier)
	if !ok {
		return nil, 0
	}
	return c, methods.choose(size)
}

// Remove removes the object if it still has the pinned state. It returns the same errors as
// [Output.Publish].
func (o *Output) Remove(ctx context.Context) (Result, error) {
	if !o.exists {
		return Result{Sure: true}, nil
	}
	send := func(ctx context.Context) error {
		return o.store.Delete(ctx, o.ref, Condition{IfMatch: o.pinned.ETag})
	}
	isOurs := func(_ Info, exists bool) bool { return !exists }
	// HEAD cannot show which request removed the object.
	return o.change(ctx, "removing", send, isOurs, 0)
}

// change follows the tables of [Output]. isOurs reports whether HEAD shows the result of this
// change.
func (o *Output) change(ctx context.Context, what string, send func(context.Context) error, isOurs func(Info, bool) bool, resolves int) (Result, error) {
	var r Result
	w := cell.Write{
		Send: func(ctx context.Context) error {
			err := send(ctx)
			r.Sent = r.Sent || !errors.Is(err, cell.ErrUnsent)
			return err
		},
		Look:     func(ctx context.Context, answer error) (cell.Outcome, error) { return o.look(ctx, answer, isOurs) },
		Pace:     pace,
		Trust:    cell.Trust{Conflict: true, Refusal: true},
		Resolves: resolves,
	}
	err := context.Cause(ctx)
	switch {
	case o.used:
		err = errUsed
	case err == nil:
		o.used = true
		_, err = w.Run(ctx)
	}
	if err != nil {
		err = fmt.Errorf("%s %s: %w", what, name(o.ref), err)
	}
	r.Sure = w.Unanswered == 0
	return r, err
}

// pace resends without a pause, unless the body could not be opened.
func pace(ctx context.Context, try int, answer error) error {
	switch {
	case errors.Is(answer, cell.ErrUnsent), try == tries && errors.Is(answer, ErrConflict):
		return answer
	case try < tries:
		return context.Cause(ctx)
	}
	return unclear(answer)
}

// look sends a HEAD request to find the outcome. Its error matches only one of the error kinds.
func (o *Output) look(ctx context.Context, answer error, isOurs func(Info, bool) bool) (cell.Outcome, error) {
	now, err := o.store.Head(ctx, o.ref)
	exists := err == nil
	refused := errors.Is(answer, ErrPrecondition)
	switch {
	case err != nil && !errors.Is(err, ErrNotFound) && refused:
		return cell.Unclear, fmt.Errorf("%w: %v, and the HEAD request failed: %v", ErrUnclear, answer, err)
	case err != nil && !errors.Is(err, ErrNotFound):
		return cell.Unclear, fmt.Errorf("%w, and the HEAD request failed: %v", unclear(answer), err)
	case isOurs(now, exists):
		return cell.Landed, nil
	case refused || !o.unchanged(now, exists):
		return cell.Lost, fmt.Errorf("%w: %v", ErrOutputChanged, answer)
	}
	return cell.Unclear, nil
}

func unclear(err error) error {
	if errors.Is(err, ErrUnclear) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrUnclear, err)
}

// unchanged compares more than the ETag.
func (o *Output) unchanged(now Info, exists bool) bool {
	p := o.pinned
	return exists == o.exists && now.ETag == p.ETag && now.VersionID == p.VersionID &&
		now.ModTime.Equal(p.ModTime) && now.Metadata[metaNonce] == p.Metadata[metaNonce]
}
