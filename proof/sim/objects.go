package sim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
)

// objects is the object store below all faults.
type objects struct {
	world *World
	kept  map[event.Object]*object
}

// object is what the store keeps. It is never changed.
type object struct {
	info bucket.Info
	body string
	born time.Duration
	new  bool // there was none before
}

const outputs = "out"

// view is the object store as one attempt sees it.
type view struct {
	*objects
	thread *thread
	claim  *ledger.Claim // nil: an audit's
	wrote  bool          // since the last look
	pinned int           // how often the output had changed when it was pinned
	seen   int           // how many versions of the input there had been when it was looked at
}

var _ bucket.Store = (*view)(nil)

// What the network makes of requests.
var (
	errTimeout = fmt.Errorf("%w: timed out", bucket.ErrUnclear)
	errBusy    = fmt.Errorf("%w: try again", bucket.ErrConflict)
	errDown    = fmt.Errorf("%w: for a moment", bucket.ErrUnavailable)
	errGone    = fmt.Errorf("%w: the process is dead", bucket.ErrUnclear)
	errDead    = fmt.Errorf("%w: the process is dead", bucket.ErrUnavailable)
)

// Head implements bucket.Store.
func (v *view) Head(ctx context.Context, ref event.Object) (bucket.Info, error) {
	step := StepLook
	switch {
	case ref.Bucket != outputs:
	case v.wrote:
		step = StepConfirm
	default:
		step = StepPin
	}
	v.wrote = false
	o, err := v.get(ctx, step, ref)
	if err != nil && !errors.Is(err, bucket.ErrNotFound) {
		return bucket.Info{}, err
	}
	if o == nil {
		return bucket.Info{}, err
	}
	return o.info, nil
}

// Get implements bucket.Store.
func (v *view) Get(ctx context.Context, ref event.Object) (bucket.Info, io.ReadCloser, error) {
	o, err := v.get(ctx, StepFetch, ref)
	if err != nil {
		return bucket.Info{}, nil, err
	}
	return o.info, io.NopCloser(strings.NewReader(o.body)), nil
}

func (v *view) get(ctx context.Context, s Step, ref event.Object) (o *object, err error) {
	v.thread.hears(&o)
	err = v.thread.read(ctx, s, func() {
		o = v.kept[ref]
		w := v.world
		switch s {
		case StepPin:
			v.pinned = w.output(ref).changes
		case StepLook, StepFetch:
			// What is fetched is what was looked at; in event order nothing was.
			if s == StepLook || v.claim != nil && w.kindOf(v.claim.Key) == trusting {
				v.seen = w.versions(ref)
			}
		}
		if o != nil && o.new && s == StepLook && w.plan.eventual && w.Now < o.born+hidden && w.Tape.Chance(300) {
			o = nil
		}
	})
	if err == nil && o == nil {
		err = bucket.ErrNotFound
	}
	return o, err
}

// hidden is how long an eventually consistent store may hide an object.
const hidden = 30 * time.Second

// Put implements bucket.Store.
func (v *view) Put(ctx context.Context, ref event.Object, o bucket.Object, c bucket.Condition) (string, error) {
	body, err := io.ReadAll(o.Body)
	if err != nil {
		return "", fmt.Errorf("%w: %w", bucket.ErrUnclear, err)
	}
	if v.thread.dead() {
		return "", errGone
	}
	v.wrote = true
	pinned, seen := v.pinned, v.seen
	var etag string
	v.thread.hears(o.Metadata)
	v.thread.hears(&etag)
	err = v.thread.write(ctx, StepPut, func() error {
		var err error
		if etag, err = v.put(ref, string(body), o, c); err == nil {
			v.world.output(ref).published(v.claim, v.kept[ref], seen, pinned, c != bucket.Condition{})
		}
		return err
	})
	return etag, err
}

// put is a PUT that reaches the store.
func (s *objects) put(ref event.Object, body string, o bucket.Object, c bucket.Condition) (string, error) {
	old := s.kept[ref]
	switch {
	case c.IfAbsent && old != nil, c.IfMatch != "" && (old == nil || old.info.ETag != c.IfMatch):
		return "", bucket.ErrPrecondition
	}
	w := s.world
	made := &object{body: body, born: w.Now, new: old == nil, info: bucket.Info{
		Key: ref.Key, ETag: etagOf(body), ModTime: w.time().Truncate(time.Second), Size: int64(len(body)),
		ContentType: o.ContentType, Metadata: o.Metadata,
	}}
	s.kept[ref] = made
	return made.info.ETag, nil
}

// etagOf is of the bytes alone, as with S3.
func etagOf(body string) string { return "e" + body }

// Delete implements bucket.Store.
func (v *view) Delete(ctx context.Context, ref event.Object, c bucket.Condition) error {
	v.wrote = true
	done, pinned, gone := false, v.pinned, v.world.output(ref).removedAt(v.claim, v.seen)
	v.thread.hears(&done)
	return v.thread.write(ctx, StepDelete, func() error {
		old := v.kept[ref]
		if c.IfMatch != "" && !v.world.plan.lax && (old == nil || old.info.ETag != c.IfMatch) {
			return bucket.ErrPrecondition
		}
		delete(v.kept, ref)
		done = true
		if old != nil {
			v.world.output(ref).unpublished(v.claim, gone, pinned, c != bucket.Condition{})
		}
		return nil
	})
}

// List implements bucket.Store. What it shows is old before it is read.
func (v *view) List(ctx context.Context, name, prefix, _ string) iter.Seq2[bucket.Info, error] {
	var found []bucket.Info
	v.thread.hears(&found)
	err := v.thread.read(ctx, StepLook, func() {
		for ref, o := range v.kept {
			if ref.Bucket == name && strings.HasPrefix(ref.Key, prefix) {
				info := o.info
				info.Metadata, info.ContentType = nil, ""
				found = append(found, info)
			}
		}
	})
	slices.SortFunc(found, func(a, b bucket.Info) int { return strings.Compare(a.Key, b.Key) })
	v.thread.sleep(v.world.Tape.UpTo(time.Minute))
	return func(yield func(bucket.Info, error) bool) {
		for _, info := range found {
			if !yield(info, nil) {
				return
			}
		}
		if err != nil {
			yield(bucket.Info{}, err)
		}
	}
}

// thing is an input object with all that ever became of it: the truth.
type thing struct {
	ref      event.Object
	versions []version
	last     time.Duration // of its last change
	counter  int           // of its sequencers
}

// version is one state of an input object.
type version struct {
	kind      event.Kind
	body      string
	sequencer event.Sequencer
	poison    poison
}

// poison is what a content does to its handler.
type poison uint8

const (
	harmless poison = iota
	failing         // every attempt fails
	hopeless        // it fails, and says that trying again is useless
	killing         // it takes the process with it
	panicking
	poisons
)

// versions counts what an object has been so far.
func (w *World) versions(ref event.Object) int {
	for _, th := range w.things {
		if th.ref == ref {
			return len(th.versions)
		}
	}
	return 0
}

func (t *thing) now() *version {
	if len(t.versions) == 0 {
		return nil
	}
	return &t.versions[len(t.versions)-1]
}

// f is what the handlers compute, and source what they computed it from.
func f(body string) string { return "f(" + body + ")" }

func inputOf(body string) string { return body[2 : len(body)-1] }

// bodyOf names a content so that what poisons can be told by reading it.
func (t *thing) bodyOf(n int, p poison) string {
	return t.ref.Bucket + "/" + t.ref.Key + "#" + strconv.Itoa(n) + "!" + strconv.Itoa(int(p))
}

// poisonIn reads what bodyOf wrote.
func poisonIn(body string) poison { return poison(body[len(body)-1] - '0') }
