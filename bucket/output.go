package bucket

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/pawlhq/pawl/event"
)

// Output is one attempt's right to change one output object. It is pinned before
// the input is read, and changed at most once, only if it still is what was
// pinned. It has no goroutines and no clock, and is not safe for concurrent use.
//
// # What an answer means
//
// A publish is sent up to three times, by the rules of [cell.Write]: conflicts and
// refusals for good are believed, and a failed precondition is looked into. Sure
// means that no request is unanswered, which may land yet. The nonce in the
// object's metadata tells the attempt's own write.
//
//	answer to the PUT         what HEAD then shows        so
//	200                       (not asked)                 Landed
//	412                       own nonce                   Landed: the store, or a proxy, had retried; or an
//	                                                      unanswered request did: no answer tells which
//	412                       anything else, or nothing   Lost, ErrOutputChanged: back to Pin, never on to Complete
//	412                       HEAD fails                  ErrUnclear, unsure: it may be the attempt's own
//	409, 429                  (not asked)                 sent again; after the third ErrConflict
//	403, 400, bucket gone…    (not asked)                 Lost, that error: this request wrote nothing
//	unclear, unanswered+1     own nonce                   Landed; this request is resolved, unanswered-1
//	unclear, unanswered+1     what was pinned             it may land yet: sent again; after the third ErrUnclear
//	unclear, unanswered+1     something else              Lost, ErrOutputChanged, unsure
//	unclear, unanswered+1     HEAD fails                  ErrUnclear, unsure
//
// A success after an unanswered request is unsure as well: that copy still
// carries a condition that holds again once the pinned state returns, an
// absence say, or the same bytes.
//
// [Output.PublishCopy] sends a copy in place of the PUT, and an answer to it means the same.
// Three answers are a copy's alone:
//
//	answer to the copy        so
//	412, 404                  the source has changed, or the output has: HEAD decides as above, and
//	                          without the own nonce it is Lost, ErrOutputChanged
//	403, 400, 501             this request wrote nothing: the bytes are sent in a PUT with the same
//	                          nonce and condition, in the same try
//	a part was not copied     nothing was sent that writes the output: that error, and Sent stays as it was
//
// A copy that lands late reads its source then. The condition on the source's ETag makes it
// write the bytes that the attempt has read, or nothing.
//
// A removal goes the same way, without a nonce to tell whose it was:
//
//	answer to the DELETE      what HEAD then shows        so
//	absent when pinned        (nothing is sent)           Landed
//	204                       (not asked)                 Landed
//	412                       nothing                     Landed
//	412                       an object                   Lost, ErrOutputChanged
//	412                       HEAD fails                  ErrUnclear; sure, as nothing was removed
//	409, 429                  (not asked)                 sent again; after the third ErrConflict
//	403, 400, bucket gone…    (not asked)                 Lost, that error
//	unclear, unanswered+1     nothing                     Landed, but unsure: it may land on an object that comes
//	                                                      back, with the same bytes or in a store that ignores
//	                                                      If-Match on DELETE (MinIO)
//	unclear, unanswered+1     what was pinned             sent again; after the third ErrUnclear
//	unclear, unanswered+1     something else              Lost, ErrOutputChanged, unsure
//	unclear, unanswered+1     HEAD fails                  ErrUnclear, unsure
//
// # What it cannot see
//
// An ETag is of the bytes alone. If another attempt replaces the pinned object
// by one with the same bytes, the condition still holds, and a late publish
// replaces the newer object. A look would tell them apart by nonce, but a
// condition cannot. This needs an attempt that outlived its lease, and so the
// takeover has set VerifyAt, which finds the wrong source recorded and heals it.
//
// A store that ignores If-Match on DELETE removes whatever is there; the same
// verification heals that.
type Output struct {
	store  Store
	ref    event.Object
	pinned Info
	exists bool
	used   bool
}

// ErrOutputChanged: the output is no longer what was pinned, and another attempt changed
// it. Go back to Pin and read the input again.
var ErrOutputChanged = errors.New("the output has changed since it was pinned")

// errUsed: an object written by a second change would look like the first's.
var errUsed = errors.New("the output was already changed with this pin: pin it again")

// Result is what the ledger has to know of a change, whether it succeeded or
// not.
type Result struct {
	// Sent says that a request may have reached the store.
	Sent bool
	// Sure says that no request is left that may land later.
	Sure bool
}

// Pin looks at the output object, before the input is read, and remembers its
// ETag or its absence. The version in ref must be empty.
func Pin(ctx context.Context, s Store, ref event.Object) (*Output, error) {
	if ref.VersionID != "" {
		return nil, fmt.Errorf("pinning %s: %w: an output must be the latest version", name(ref), ErrInvalid)
	}
	o := &Output{store: s, ref: ref}
	info, err := s.Head(ctx, ref)
	switch {
	case err == nil && info.ETag == "":
		// Without one no condition could guard what replaces it.
		return nil, fmt.Errorf("pinning %s: %w: %w", name(ref), ErrUnavailable, ErrNoETag)
	case err == nil:
		o.pinned, o.exists = info, true
	case !errors.Is(err, ErrNotFound):
		return nil, fmt.Errorf("pinning %s: %w", name(ref), err)
	}
	return o, nil
}

// Exists says whether there was an object when it was pinned.
func (o *Output) Exists() bool { return o.exists }

// ModTime returns when the pinned object was written, and zero if there was
// none.
func (o *Output) ModTime() time.Time { return o.pinned.ModTime }

// Source returns the source identity that the pinned object records. It is not
// ok if there was no object, if Pawl did not write it, or if it is only a part
// of what Pawl wrote.
func (o *Output) Source() (source string, ok bool) {
	if !o.exists || !isComplete(o.pinned) {
		return "", false
	}
	source, ok = o.pinned.Metadata[metaSource]
	return source, ok
}

// Stamp is what a published object says of its origin, in its metadata.
type Stamp struct {
	Pipeline string // pawl-pipeline
	Object   string // pawl-object: names the input, also once it is gone
	Source   string // pawl-source: the identity of the input that was read
	Fence    int64  // pawl-fence: the claim's
	Nonce    string // pawl-nonce: random, fresh for each attempt
}

// The names of a stamp's metadata. The size is there because not every store
// refuses a body that breaks off: versitygw keeps the part that arrived, and a writer
// that was killed cannot tell.
const (
	metaPipeline = "pawl-pipeline"
	metaObject   = "pawl-object"
	metaSource   = "pawl-source"
	metaFence    = "pawl-fence"
	metaNonce    = "pawl-nonce"
	metaSize     = "pawl-size"
)

func (s Stamp) metadata(size int64) map[string]string {
	return map[string]string{
		metaPipeline: s.Pipeline,
		metaObject:   s.Object,
		metaSource:   s.Source,
		metaFence:    strconv.FormatInt(s.Fence, 10),
		metaNonce:    s.Nonce,
		metaSize:     strconv.FormatInt(size, 10),
	}
}

// validate returns an error for a stamp that a store would not give back unchanged.
// Without a nonce another attempt's object would look like ours.
func (s Stamp) validate() error {
	if s.Nonce == "" {
		return fmt.Errorf("%w: a stamp without a nonce", ErrInvalid)
	}
	for _, value := range []string{s.Pipeline, s.Object, s.Source, s.Nonce} {
		for i := range len(value) {
			edge := i == 0 || i == len(value)-1
			if c := value[i]; c < ' ' || c > '~' || (c == ' ' && edge) {
				return fmt.Errorf("%w: metadata %s is not printable ASCII", ErrInvalid, event.Quote(value))
			}
		}
	}
	return nil
}

// whole says whether an object is as long as its stamp says.
func isComplete(i Info) bool { return i.Metadata[metaSize] == strconv.FormatInt(i.Size, 10) }

func name(ref event.Object) string { return ref.String() }
