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

type objectStore struct {
	world  *World
	stored map[event.Object]*storedObject
}

// storedObject is immutable.
type storedObject struct {
	info      bucket.Info
	body      string
	createdAt time.Duration
	isNew     bool
}

const outputs = "out"

// storeView is the object store from the view of one attempt.
type storeView struct {
	*objectStore
	thread        *thread
	claim         *ledger.Claim // nil for an audit
	outputSent    bool          // since the last HEAD
	pinnedChanges int           // output changes at the HEAD of the output
	inputVersions int           // input versions at the last HEAD of the input
}

var _ bucket.Store = (*storeView)(nil)

var (
	errTimeout = fmt.Errorf("%w: timed out", bucket.ErrUnclear)
	errBusy    = fmt.Errorf("%w: try again", bucket.ErrConflict)
	errDown    = fmt.Errorf("%w: for a moment", bucket.ErrUnavailable)
	errGone    = fmt.Errorf("%w: the process is dead", bucket.ErrUnclear)
	errDead    = fmt.Errorf("%w: the process is dead", bucket.ErrUnavailable)
)

func (v *storeView) Head(ctx context.Context, ref event.Object) (bucket.Info, error) {
	step := StepLook
	switch {
	case ref.Bucket != outputs:
	case v.outputSent:
		step = StepConfirm
	default:
		step = StepPin
	}
	v.outputSent = false
	o, err := v.get(ctx, step, ref)
	if err != nil && !errors.Is(err, bucket.ErrNotFound) {
		return bucket.Info{}, err
	}
	if o == nil {
		return bucket.Info{}, err
	}
	return o.info, nil
}

func (v *storeView) Get(ctx context.Context, ref event.Object) (bucket.Info, io.ReadCloser, error) {
	o, err := v.get(ctx, StepFetch, ref)
	if err != nil {
		return bucket.Info{}, nil, err
	}
	return o.info, io.NopCloser(strings.NewReader(o.body)), nil
}

func (v *storeView) get(ctx context.Context, s Step, ref event.Object) (o *storedObject, err error) {
	v.thread.observe(&o)
	err = v.thread.read(ctx, s, func() {
		o = v.stored[ref]
		w := v.world
		switch s {
		case StepPin:
			v.pinnedChanges = w.oracleOfOutput(ref).changes
		case StepLook, StepFetch:
			// GET returns the version of the last HEAD. In event order there was no HEAD.
			if s == StepLook || v.claim != nil && w.kindOf(v.claim.Key) == trusting {
				v.inputVersions = w.versionCount(ref)
			}
		}
		if o != nil && o.isNew && s == StepLook && w.plan.eventual && w.Now < o.createdAt+hidden && w.Tape.Chance(300) {
			o = nil
		}
	})
	if err == nil && o == nil {
		err = bucket.ErrNotFound
	}
	return o, err
}

// hidden bounds how long an eventually consistent store hides a new object.
const hidden = 30 * time.Second

func (v *storeView) Put(ctx context.Context, ref event.Object, o bucket.Object, c bucket.Condition) (string, error) {
	body, err := io.ReadAll(o.Body)
	if err != nil {
		return "", fmt.Errorf("%w: %w", bucket.ErrUnclear, err)
	}
	if v.thread.dead() {
		return "", errGone
	}
	v.outputSent = true
	pinned, seen := v.pinnedChanges, v.inputVersions
	var etag string
	v.thread.observe(o.Metadata)
	v.thread.observe(&etag)
	err = v.thread.write(ctx, StepPut, func() error {
		var err error
		if etag, err = v.put(ref, string(body), o, c); err == nil {
			v.world.oracleOfOutput(ref).outputWritten(v.claim, v.stored[ref], seen, pinned, c != bucket.Condition{})
		}
		return err
	})
	return etag, err
}

func (s *objectStore) put(ref event.Object, body string, o bucket.Object, c bucket.Condition) (string, error) {
	old := s.stored[ref]
	switch {
	case c.IfAbsent && old != nil, c.IfMatch != "" && (old == nil || old.info.ETag != c.IfMatch):
		return "", bucket.ErrPrecondition
	}
	w := s.world
	made := &storedObject{body: body, createdAt: w.Now, isNew: old == nil, info: bucket.Info{
		Key: ref.Key, ETag: etagOf(body), ModTime: w.time().Truncate(time.Second), Size: int64(len(body)),
		ContentType: o.ContentType, Metadata: o.Metadata,
	}}
	s.stored[ref] = made
	return made.info.ETag, nil
}

// As in S3, the ETag depends only on the bytes.
func etagOf(body string) string { return "e" + body }

func (v *storeView) Delete(ctx context.Context, ref event.Object, c bucket.Condition) error {
	v.outputSent = true
	done, pinned, gone := false, v.pinnedChanges, v.world.oracleOfOutput(ref).removedAt(v.claim, v.inputVersions)
	v.thread.observe(&done)
	return v.thread.write(ctx, StepDelete, func() error {
		old := v.stored[ref]
		if c.IfMatch != "" && !v.world.plan.ignoresIfMatch && (old == nil || old.info.ETag != c.IfMatch) {
			return bucket.ErrPrecondition
		}
		delete(v.stored, ref)
		done = true
		if old != nil {
			v.world.oracleOfOutput(ref).outputDeleted(v.claim, gone, pinned, c != bucket.Condition{})
		}
		return nil
	})
}

// The result may be outdated before the caller reads it.
func (v *storeView) List(ctx context.Context, name, prefix, _ string) iter.Seq2[bucket.Info, error] {
	var found []bucket.Info
	v.thread.observe(&found)
	err := v.thread.read(ctx, StepLook, func() {
		for ref, o := range v.stored {
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

type object struct {
	ref       event.Object
	versions  []version
	changedAt time.Duration
	counter   int // of its sequencers
}

type version struct {
	kind      event.Kind
	body      string
	sequencer event.Sequencer
	poison    poison
}

type poison uint8

const (
	harmless poison = iota
	failing         // fails at every attempt
	hopeless        // fails with a permanent error
	killing         // kills the process
	panicking
	poisons
)

func (w *World) versionCount(ref event.Object) int {
	for _, th := range w.objects {
		if th.ref == ref {
			return len(th.versions)
		}
	}
	return 0
}

func (t *object) current() *version {
	if len(t.versions) == 0 {
		return nil
	}
	return &t.versions[len(t.versions)-1]
}

// f is the function that the handlers compute. inputOf is its inverse.
func f(body string) string { return "f(" + body + ")" }

func inputOf(body string) string { return body[2 : len(body)-1] }

func (t *object) bodyOf(n int, p poison) string {
	return t.ref.Bucket + "/" + t.ref.Key + "#" + strconv.Itoa(n) + "!" + strconv.Itoa(int(p))
}

func poisonIn(body string) poison { return poison(body[len(body)-1] - '0') }
