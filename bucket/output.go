package bucket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"strconv"
	"time"
)

// Stamp is what an output records of the attempt that wrote it, as metadata.
type Stamp struct {
	Pipeline string
	Source   string // identity of the input, printable ASCII
	Fence    int64
	Nonce    string // fresh for every publish: tells one's own write from another's
}

// The names under which a Stamp is stored.
const (
	metaPipeline = "pawl-pipeline"
	metaSource   = "pawl-source"
	metaFence    = "pawl-fence"
	metaNonce    = "pawl-nonce"
)

// Output is one attempt's right to change one output object, from the moment it
// was pinned until somebody else changes it.
//
// What it does with each answer of the store:
//
//	answer to a write     then the store shows     it means
//	200, 204                                       done
//	409                                            nothing written: send again
//	412                   one's own nonce          done: an earlier try had landed
//	412                   (removing) no object     done: gone is gone
//	412                   anything else            moved: back to Pin
//	unclear               one's own nonce          done
//	unclear               (removing) no object     done, but not sure
//	unclear               the pinned object        not landed yet: send again
//	unclear               anything else            moved, and not sure
//	unclear               unclear                  unclear, and not sure
//	other refusals                                 nothing written
//
// A write that had no definite answer and was not seen landed may land later,
// where the condition happens to hold again: when the output was removed, or
// rewritten with the pinned bytes, for an ETag is a digest of them. So once a
// try was unclear the result is not sure, though a later try be answered.
type Output struct {
	store  Store
	ref    Ref
	info   Info
	exists bool
}

// Result is what the ledger has to know of a Publish or Remove, also of one
// that failed.
type Result struct {
	Sent bool // a request went out
	Sure bool // every request had a definite answer: nothing can land later
}

// ErrMoved says that the output is not what it was when it was pinned: another
// attempt changed it. Go back to Pin, never on.
var ErrMoved = errors.New("the output has changed since it was pinned")

// tries is how often a write is sent that did not land.
const tries = 3

// Pin looks at an output object and remembers what is there. It comes before
// the input is read.
func Pin(ctx context.Context, s Store, ref Ref) (*Output, error) {
	info, err := s.Head(ctx, ref)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return nil, err
	}
	return &Output{store: s, ref: ref, info: info, exists: err == nil}, nil
}

// Exists reports whether the object existed when it was pinned.
func (o *Output) Exists() bool { return o.exists }

// ModTime returns when the pinned object was written; zero if it did not exist.
func (o *Output) ModTime() time.Time { return o.info.ModTime }

// Source returns the identity of the input that the pinned object was made
// from, and whether Pawl made it.
func (o *Output) Source() (string, bool) {
	s, ok := o.info.Metadata[metaSource]
	return s, ok
}

// Publish replaces the pinned object. open is called for each try and must
// yield size bytes; its error is returned as it is.
func (o *Output) Publish(ctx context.Context, st Stamp, open func() (io.ReadCloser, error), size int64, contentType string) (Result, error) {
	meta := map[string]string{
		metaPipeline: st.Pipeline, metaSource: st.Source,
		metaFence: strconv.FormatInt(st.Fence, 10), metaNonce: st.Nonce,
	}
	write := func() (sent bool, err error) {
		body, err := open()
		if err != nil {
			return false, err
		}
		defer func() { _ = body.Close() }() // it was only read
		_, err = o.store.Put(ctx, o.ref, Object{Body: body, Size: size, ContentType: contentType, Metadata: meta}, o.condition())
		return true, err
	}
	return o.try(ctx, write, func(now *Info) bool { return now != nil && now.Metadata[metaNonce] == st.Nonce })
}

// Remove removes the pinned object. If there was none it sends nothing.
func (o *Output) Remove(ctx context.Context) (Result, error) {
	if !o.exists {
		return Result{Sure: true}, nil
	}
	remove := func() (sent bool, err error) {
		err = o.store.Delete(ctx, o.ref, o.condition())
		if errors.Is(err, ErrNotFound) {
			err = nil
		}
		return true, err
	}
	r, err := o.try(ctx, remove, func(now *Info) bool { return now == nil })
	return r, err
}

func (o *Output) condition() Condition {
	if o.exists {
		return Condition{IfMatch: o.info.ETag}
	}
	return Condition{IfAbsent: true}
}

// try sends a write until its fate is known. landed tells from what the store
// shows (nil: no object) whether it is done.
func (o *Output) try(ctx context.Context, write func() (bool, error), landed func(*Info) bool) (Result, error) {
	r := Result{Sure: true}
	unclear := 0
	var err error
	for range tries {
		var sent bool
		sent, err = write()
		r.Sent = r.Sent || sent
		switch {
		case err == nil:
			return r, nil
		case errors.Is(err, ErrConflict):
			continue
		case errors.Is(err, ErrUnclear):
			unclear++
			r.Sure = false
		case !errors.Is(err, ErrPrecondition):
			return r, err
		}
		now, lookErr := o.look(ctx)
		switch {
		case lookErr != nil:
			return r, fmt.Errorf("%w (and then: %w)", err, lookErr)
		case landed(now):
			// One's own nonce accounts for one unclear try. That the object
			// is gone does not say who removed it.
			r.Sure = unclear == 0 || unclear == 1 && now != nil
			return r, nil
		case errors.Is(err, ErrPrecondition), !o.unchanged(now):
			return r, fmt.Errorf("%w: %w", ErrMoved, err)
		}
	}
	return r, err
}

// look returns what the store shows now, nil for no object.
func (o *Output) look(ctx context.Context) (*Info, error) {
	info, err := o.store.Head(ctx, o.ref)
	switch {
	case errors.Is(err, ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return &info, nil
}

// unchanged reports that the store still shows what was pinned.
func (o *Output) unchanged(now *Info) bool {
	if now == nil || !o.exists {
		return now == nil && !o.exists
	}
	return now.ETag == o.info.ETag && now.VersionID == o.info.VersionID && maps.Equal(now.Metadata, o.info.Metadata)
}
