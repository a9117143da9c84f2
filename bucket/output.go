package bucket

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/pawlhq/pawl/event"
)

// Output lets one attempt change one output object. The attempt pins the output before it reads
// the input. It can then change the output once, if it still has the pinned state. Output is not
// safe for concurrent use.
//
// # Answers
//
// A change is sent up to three times by the rules of [cell.Write]. Output trusts conflicts and
// permanent refusals. A result is sure if no unanswered request may still land. The attempt
// recognizes its own write by the nonce in the metadata.
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
// A success after an unanswered request is also unsure: the pinned state may return, and then
// that request's condition holds again.
//
// [Output.PublishCopy] sends a copy instead of the PUT. Three answers occur only for a copy:
//
//	answer to the copy        result
//	412, 404                  the source or the output has changed: HEAD decides as above; without the own
//	                          nonce: Lost, ErrOutputChanged
//	403, 400, 501             this request wrote nothing: the content is sent in a PUT with the same nonce and
//	                          condition, in the same try
//	a part was not copied     the request that writes the output was not sent: that error; Sent is unchanged
//
// A copy that lands late reads its source at that time. Because of the condition on the source's
// ETag, it writes what the attempt has read, or nothing.
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
// An ETag depends only on the content. If another attempt replaces the pinned object with
// the same content, the condition still holds, and a late publish replaces the newer object. Only
// an attempt that outlived its lease does that. The takeover has then set VerifyAt, and the
// verification repairs the output. It also repairs a late removal in a store that ignores
// If-Match on DELETE.
type Output struct {
	store  Store
	ref    event.Object
	pinned Info
	exists bool
	used   bool
}

// ErrOutputChanged is returned if another attempt changed the output since it was pinned. Pin the
// output and read the input again.
var ErrOutputChanged = errors.New("the output has changed since it was pinned")

// After two changes with one pin, the attempt could not distinguish its two objects.
var errUsed = errors.New("the output was already changed with this pin: pin it again")

// Result is the outcome of a change. It is valid even if the change returns an error.
type Result struct {
	Sent bool // a request may have reached the store
	Sure bool // no request may land later
}

// Pin reads the output object before the input is read. The VersionID of ref must be empty.
func Pin(ctx context.Context, s Store, ref event.Object) (*Output, error) {
	if ref.VersionID != "" {
		return nil, fmt.Errorf("pinning %s: %w: an output must be the latest version", name(ref), ErrInvalid)
	}
	o := &Output{store: s, ref: ref}
	info, err := s.Head(ctx, ref)
	switch {
	case err == nil && info.ETag == "":
		// No condition could protect the object.
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

// ModTime returns the modification time of the pinned object; zero if there was none.
func (o *Output) ModTime() time.Time { return o.pinned.ModTime }

// Source returns the source identity of the pinned object. ok is false if there was no object, or
// if it is foreign or truncated.
func (o *Output) Source() (source string, ok bool) {
	if !o.exists || !isComplete(o.pinned) {
		return "", false
	}
	source, ok = o.pinned.Metadata[metaSource]
	return source, ok
}

// Stamp is the origin of a published object, stored in its metadata.
type Stamp struct {
	Pipeline string // pawl-pipeline
	Object   string // pawl-object: the input, which may no longer exist
	Source   string // pawl-source: the identity of the input's content
	Fence    int64  // pawl-fence: the fence of the claim
	Nonce    string // pawl-nonce: random, new for each attempt
}

// The size shows whether an object is complete: some stores, such as versitygw, keep a part of a
// truncated body.
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

// validate rejects a stamp that a store would not return unchanged.
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

func isComplete(i Info) bool { return i.Metadata[metaSize] == strconv.FormatInt(i.Size, 10) }

func name(ref event.Object) string { return ref.String() }
