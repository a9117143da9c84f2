package bucket

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/pawlhq/pawl/event"
)

// Output lets one attempt change one output object. The attempt pins the output before it reads the
// input. It can then change the output once, if the output still has the pinned state. Output has
// no goroutines and no clock, and is not safe for concurrent use.
//
// # Answers
//
// A publish is sent up to three times by the rules of [cell.Write]. Output trusts conflicts and
// permanent refusals. After a failed precondition it sends a HEAD request. A result is sure if no
// unanswered request may still land. The attempt recognizes its own write by the nonce in the
// metadata.
//
//	answer to the PUT         what HEAD then shows        result
//	200                       (not sent)                  Landed
//	412                       own nonce                   Landed: the store or a proxy retried, or an unanswered
//	                                                      request landed; it is unknown which
//	412                       anything else, or nothing   Lost, ErrOutputChanged: pin again, do not complete
//	412                       HEAD fails                  ErrUnclear, unsure: it may be the attempt's own write
//	409, 429                  (not sent)                  sent again; after the third: ErrConflict
//	403, 400, no bucket…      (not sent)                  Lost, that error: this request wrote nothing
//	unclear, unanswered+1     own nonce                   Landed; this request is resolved, unanswered-1
//	unclear, unanswered+1     the pinned state            may land later: sent again; after the third: ErrUnclear
//	unclear, unanswered+1     something else              Lost, ErrOutputChanged, unsure
//	unclear, unanswered+1     HEAD fails                  ErrUnclear, unsure
//
// A success after an unanswered request is also unsure. The condition of the unanswered request
// holds again if the pinned state returns, because the object is deleted, or gets the same content
// again.
//
// [Output.PublishCopy] sends a copy instead of the PUT, and its answers have the same meaning.
// Three answers occur only for a copy:
//
//	answer to the copy        result
//	412, 404                  the source or the output has changed: HEAD decides as above; without the own
//	                          nonce: Lost, ErrOutputChanged
//	403, 400, 501             this request wrote nothing: the content is sent in a PUT with the same nonce and
//	                          condition, in the same try
//	a part was not copied     the request that writes the output was not sent: that error; Sent is unchanged
//
// A copy that lands late reads its source at that time. Because of the condition on the source's
// ETag, it writes either the content that the attempt has read, or nothing.
//
// A removal follows the same rules, but has no nonce:
//
//	answer to the DELETE      what HEAD then shows        result
//	absent when pinned        (nothing is sent)           Landed
//	204                       (not sent)                  Landed
//	412                       nothing                     Landed
//	412                       an object                   Lost, ErrOutputChanged
//	412                       HEAD fails                  ErrUnclear; sure, because nothing was removed
//	409, 429                  (not sent)                  sent again; after the third: ErrConflict
//	403, 400, no bucket…      (not sent)                  Lost, that error
//	unclear, unanswered+1     nothing                     Landed, but unsure: it may land on a later object with
//	                                                      the same content, or on any later object in a store that
//	                                                      ignores If-Match on DELETE (MinIO)
//	unclear, unanswered+1     the pinned state            sent again; after the third: ErrUnclear
//	unclear, unanswered+1     something else              Lost, ErrOutputChanged, unsure
//	unclear, unanswered+1     HEAD fails                  ErrUnclear, unsure
//
// # Limits
//
// An ETag depends only on the content. If another attempt replaces the pinned object by an object
// with the same content, the condition still holds, and a late publish replaces the newer object. A
// HEAD request could distinguish the two objects by the nonce, but a condition cannot. This happens
// only if an attempt outlived its lease. In that case the takeover has set VerifyAt, and the
// verification finds the wrong source in the metadata and repairs it.
//
// If a store ignores If-Match on DELETE, a late removal can delete a newer object. The same
// verification repairs that.
type Output struct {
	store  Store
	ref    event.Object
	pinned Info
	exists bool
	used   bool
}

// ErrOutputChanged is returned if the output no longer has the pinned state, because another
// attempt changed it. Pin the output and read the input again.
var ErrOutputChanged = errors.New("the output has changed since it was pinned")

// errUsed is returned for a second change with one pin. After two changes, the attempt could not
// distinguish its two objects.
var errUsed = errors.New("the output was already changed with this pin: pin it again")

// Result is the outcome of a change for the ledger. It is valid even if an error is returned with
// it.
type Result struct {
	// Sent reports whether a request may have reached the store.
	Sent bool
	// Sure reports whether no request remains that may land later.
	Sure bool
}

// Pin reads the output object before the input is read, and stores its ETag or its absence. The
// VersionID of ref must be empty.
func Pin(ctx context.Context, s Store, ref event.Object) (*Output, error) {
	if ref.VersionID != "" {
		return nil, fmt.Errorf("pinning %s: %w: an output must be the latest version", name(ref), ErrInvalid)
	}
	o := &Output{store: s, ref: ref}
	info, err := s.Head(ctx, ref)
	switch {
	case err == nil && info.ETag == "":
		// Without an ETag, no condition could protect the object.
		return nil, fmt.Errorf("pinning %s: %w: %w", name(ref), ErrUnavailable, ErrNoETag)
	case err == nil:
		o.pinned, o.exists = info, true
	case !errors.Is(err, ErrNotFound):
		return nil, fmt.Errorf("pinning %s: %w", name(ref), err)
	}
	return o, nil
}

// Exists reports whether the object existed when it was pinned.
func (o *Output) Exists() bool { return o.exists }

// ModTime returns the modification time of the pinned object, or the zero time if there was
// none.
func (o *Output) ModTime() time.Time { return o.pinned.ModTime }

// Source returns the source identity in the metadata of the pinned object. ok is false if there
// was no object, if another program wrote it, or if it is truncated.
func (o *Output) Source() (source string, ok bool) {
	if !o.exists || !isComplete(o.pinned) {
		return "", false
	}
	source, ok = o.pinned.Metadata[metaSource]
	return source, ok
}

// Stamp is the origin of a published object. It is stored in the metadata.
type Stamp struct {
	Pipeline string // pawl-pipeline
	Object   string // pawl-object: the input, which may no longer exist
	Source   string // pawl-source: the identity of the input's content
	Fence    int64  // pawl-fence: the fence of the claim
	Nonce    string // pawl-nonce: random, new for each attempt
}

// Metadata names of a stamp. The size shows whether an object is complete. Some stores, such as
// versitygw, keep a part of a truncated body, and a writer that was killed cannot detect that.
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

// validate returns an error for a stamp that a store would not return unchanged. It requires a
// nonce, because without one the attempt cannot recognize its own object.
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

// isComplete reports whether an object has the size in its stamp.
func isComplete(i Info) bool { return i.Metadata[metaSize] == strconv.FormatInt(i.Size, 10) }

func name(ref event.Object) string { return ref.String() }
