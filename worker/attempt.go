package worker

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
)

// Attempt performs steps 2 to 5 of the protocol for one claim: pin the output,
// read the input, act, publish. The order of the steps is the protocol: pinned
// after the read, a worker that slept in between would overwrite a newer result
// with an older one.
//
// It runs in its caller's goroutine, starts none, and knows time and chance only
// from its fields, so that a simulator can drive it. All of them are required, except FailAfter.
type Attempt struct {
	Ledger   *ledger.Ledger
	Objects  bucket.Store
	Pipeline *Pipeline
	Claim    ledger.Claim
	Nonce    func() string // never the same twice
	Now      func() time.Time
	// FailAfter, when set, is how long an attempt must have run to count as failed, instead
	// of released, when a shutdown cancels it.
	FailAfter time.Duration

	ending          ledger.Ending
	began           bool        // the handler was called
	completionAsked bool        // it has asked for its completion, to commit it
	finalRow        *ledger.Row // the row as its commit left it
	pinned          *bucket.Output
	info            bucket.Info
}

// maxMoves is how often an attempt starts over because the input or the output
// changed under it, before it makes room for others.
const maxMoves = 5

// recheckDelay is how soon an object is looked for again that an eventually
// consistent store may be hiding.
const recheckDelay = 15 * time.Second

// unmatched is the failure of an object that was heard of before the pipeline's match
// was edited. Nothing has checked where its output would go now, so it rests: until
// it matches again, or a person drops it.
const unmatched = "the pipeline no longer matches this object: Pawl checks again every hour; pawl redrive --drop removes the row"

// unmatchedRetry is how long it rests, before it is seen whether it matches again.
const unmatchedRetry = time.Hour

// errMayBeHidden says that "not found" may not be believed yet.
var errMayBeHidden = errors.New("not found, but it changed too recently to count as removed")

// errMoved says that the object changed between two reads of one attempt.
var errMoved = errors.New("the object changed during the attempt")

// Run makes the attempt, and says how it ended. From its lease's deadline on ctx
// must be cancelled, with [ErrLeaseLost] as its cause. An Attempt runs once.
func (x *Attempt) Run(ctx context.Context) engine.Finished {
	fin := engine.Finished{Key: x.Claim.Key, Fence: x.Claim.Fence, Transactional: x.Pipeline.Transactional}
	if context.Cause(ctx) != nil {
		fin.Result = engine.Released // nothing was begun
		return fin
	}
	if !x.Pipeline.Match(x.ref()) {
		fin.Result = engine.Failed
		fin.Failure = ledger.Failure{Message: unmatched, After: unmatchedRetry, Uncounted: true}
		return fin
	}
	var err error
	began := x.Now()
	fin.Acted, err = x.run(ctx)
	fin.Ending, fin.Row = x.ending, x.finalRow
	cause := context.Cause(ctx)
	switch {
	case err == nil:
		fin.Result = engine.Completed
	case errors.Is(cause, ErrShutdown) && (x.FailAfter == 0 || x.Now().Sub(began) < x.FailAfter):
		fin.Result = engine.Released
	default:
		fin.Result = engine.Failed
		fin.Failure = ledger.Failure{Message: err.Error(), Permanent: IsPermanent(err) && cause == nil, After: retryAfter(err), Uncounted: x.uncounted(err)}
		if cause == nil {
			fin.Shared = sharedBy(err)
		}
		if cause != nil && !errors.Is(err, cause) {
			fin.Failure.Message = cause.Error() + ": " + fin.Failure.Message
		}
	}
	return fin
}

// run returns whether there was anything to do.
func (x *Attempt) run(ctx context.Context) (acted bool, err error) {
	for range maxMoves {
		acted, err = x.try(ctx)
		if !errors.Is(err, errMoved) && !errors.Is(err, bucket.ErrOutputChanged) {
			break
		}
		if cause := context.Cause(ctx); cause != nil {
			return acted, cause
		}
	}
	return acted, err
}

func (x *Attempt) try(ctx context.Context) (acted bool, err error) {
	out, err := x.pin(ctx)
	if err != nil {
		return false, err
	}
	asked := x.Now() // the answer may be long on its way, or its reader asleep
	read, err := x.read(ctx)
	if err != nil {
		return false, err
	}
	if read.Kind == event.Removed && !read.ByEvent && x.Pipeline.EventuallyConsistent {
		if wait := x.Claim.NotFoundDelay(out, asked); wait > 0 {
			return false, RetryAfter(fmt.Errorf("read the metadata of %s: %w", x.object(), errMayBeHidden), min(wait, recheckDelay))
		}
	}
	x.ending.Read = read
	if !x.mustAct(&read, out) {
		return false, nil
	}
	return true, x.act(ctx, &read)
}

// mustAct decides whether there is anything to do. What the attempt itself has done
// elsewhere, before it started over, is not what the row says was had.
func (x *Attempt) mustAct(read *ledger.Read, out *ledger.Pinned) bool {
	if x.Pipeline.Transactional {
		return x.Claim.MustCommit(read)
	}
	return out == nil && x.began || x.Claim.MustAct(read, out)
}

// pin looks at the output before anything is read.
func (x *Attempt) pin(ctx context.Context) (*ledger.Pinned, error) {
	if x.Pipeline.Output == nil {
		return nil, nil
	}
	ref := x.Pipeline.Output(x.Claim.Key)
	if err := checkOutput(ref.Key); err != nil {
		return nil, Permanent(fmt.Errorf("the output of %s %w", x.object(), err))
	}
	out, err := bucket.Pin(ctx, x.Objects, ref)
	if err != nil {
		return nil, fmt.Errorf("read the metadata of the output: %w", hint(err))
	}
	x.pinned = out
	source, _ := out.Source()
	return &ledger.Pinned{Exists: out.Exists(), Source: source, ModTime: out.ModTime()}, nil
}

// checkOutput refuses keys that a server on top of folders would take for
// another place: s3://out/gray/../x is not below s3://out/gray/ there.
func checkOutput(key string) error {
	if key == "" {
		return errors.New("has an empty key: set an output prefix, or match a shorter prefix")
	}
	for part := range strings.SplitSeq(key, "/") {
		if part == "." || part == ".." {
			return fmt.Errorf("would have the key %s, which some servers store under another key: rename the object", event.Quote(key))
		}
	}
	return nil
}

// read looks at the object, or takes the event's word for it.
func (x *Attempt) read(ctx context.Context) (ledger.Read, error) {
	if x.Pipeline.Order == EventOrder {
		return x.readEvent(ctx)
	}
	info, err := x.Objects.Head(ctx, x.ref())
	switch {
	case errors.Is(err, bucket.ErrNotFound):
		x.info = bucket.Info{}
		return ledger.Read{Kind: event.Removed}, nil
	case err != nil:
		return ledger.Read{}, fmt.Errorf("read the metadata of %s: %w", x.object(), hint(err))
	}
	x.info = info
	return ledger.Read{Kind: event.Created, Identity: Identify(&info)}, nil
}

// readEvent has no read to compare with. So it makes sure, after the pin, that
// the lease is still its own: whoever holds a later one pins later as well.
// Without an output there is nothing that the pin would have to protect.
func (x *Attempt) readEvent(ctx context.Context) (ledger.Read, error) {
	if x.pinned != nil {
		if err := x.checkLease(ctx); err != nil {
			return ledger.Read{}, err
		}
	}
	want := x.Claim.Want
	x.info = bucket.Info{
		Key: x.Claim.Key.Key, VersionID: want.Identity.VersionID, ETag: want.Identity.ETag, Size: want.Identity.Size,
	}
	return ledger.Read{Kind: want.Kind, Identity: want.Identity, ByEvent: true}, nil
}

func (x *Attempt) checkLease(ctx context.Context) error {
	rows, err := x.Ledger.Load(ctx, []ledger.RowKey{x.Claim.Key})
	if err != nil {
		return fmt.Errorf("check the lease: %w", err)
	}
	if len(rows) != 1 || !rows[0].Held() || rows[0].Lease.Fence != x.Claim.Fence {
		return ErrLeaseLost
	}
	return nil
}

// act runs the handler and publishes what it wrote.
func (x *Attempt) act(ctx context.Context, read *ledger.Read) error {
	if x.pinned != nil && read.Kind == event.Removed {
		return x.remove(ctx)
	}
	// What was read after the lease may be newer than what its next holder has
	// read, and would come before it.
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	t := x.task(read)
	defer t.discard()
	// Nothing of a transaction counts as sent: without its commit there is nothing.
	x.ending.Sent = x.ending.Sent || x.pinned == nil && !x.Pipeline.Transactional
	x.began = true
	err := recoverPanic("handler of "+x.Pipeline.Name, func() error { return x.Pipeline.Handler.Handle(ctx, t) })
	if x.Pipeline.Transactional {
		return x.checkCommit(ctx, err)
	}
	if err != nil || x.pinned == nil {
		return err // the effect counts even if the lease expired meanwhile
	}
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if t.content == nil {
		return x.remove(ctx)
	}
	return x.publish(ctx, t.content, read)
}

func (x *Attempt) publish(ctx context.Context, c *content, read *ledger.Read) error {
	stamp := bucket.Stamp{
		Pipeline: x.Pipeline.Name, Object: x.Claim.Key.Digest(), Source: x.Claim.Source(read), Fence: x.Claim.Fence, Nonce: x.Nonce(),
	}
	open := func() (body io.ReadCloser, err error) {
		err = recoverPanic("content published by "+x.Pipeline.Name, func() error {
			body, err = c.open()
			return err
		})
		return body, err
	}
	copies := c.copies
	if read.ByEvent {
		copies = 0 // the event's ETag is not known to be that of a read
	}
	from := bucket.Source{Ref: x.ref(), ETag: x.info.ETag}
	res, err := x.pinned.PublishCopy(ctx, stamp, from, copies, open, c.size(), c.contentType)
	x.sent(res)
	if err != nil {
		return fmt.Errorf("write the output: %w", hint(err))
	}
	return nil
}

func (x *Attempt) remove(ctx context.Context) error {
	res, err := x.pinned.Remove(ctx)
	x.sent(res)
	if err != nil {
		return fmt.Errorf("remove the output: %w", hint(err))
	}
	return nil
}

func (x *Attempt) sent(r bucket.Result) {
	x.ending.Sent = x.ending.Sent || r.Sent
	x.ending.Unsure = x.ending.Unsure || r.Sent && !r.Sure
}

func (x *Attempt) task(read *ledger.Read) *Task {
	object := x.Claim.Key.Object()
	object.VersionID = cmp.Or(x.info.VersionID, object.VersionID) // a version that is gone has no info
	return &Task{
		Pipeline: x.Pipeline.Name, Object: object, Kind: read.Kind, Info: x.info,
		Attempt: x.Claim.Number, Fence: x.Claim.Fence, IdempotencyKey: x.Claim.IdempotencyKey(read),
		open: func(ctx context.Context) (io.ReadCloser, error) { return x.open(ctx, read) }, hasOut: x.pinned != nil,
		completion: x.completion,
	}
}

// open reads what was looked at, and nothing else; in event order, what is there.
func (x *Attempt) open(ctx context.Context, read *ledger.Read) (io.ReadCloser, error) {
	if x.Objects == nil {
		return nil, Permanent(fmt.Errorf("read %s: no object store is configured", x.object()))
	}
	info, body, err := x.Objects.Get(ctx, x.ref())
	switch {
	case errors.Is(err, bucket.ErrNotFound) && !read.ByEvent:
		return nil, errMoved
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", x.object(), hint(err))
	case read.ByEvent:
		// Not what the event named, perhaps: an audit is to know what was read.
		x.ending.Read.Identity = Identify(&info)
	case !Identify(&info).Same(read.Identity):
		return nil, errors.Join(errMoved, body.Close())
	}
	return body, nil
}

func (x *Attempt) ref() event.Object {
	k := x.Claim.Key
	return event.Object{Bucket: k.Bucket, Key: k.Key, VersionID: k.VersionID}
}

func (x *Attempt) object() string { return x.Claim.Key.Object().String() }

// Identify returns what tells this content of an object from others.
func Identify(i *bucket.Info) ledger.Identity {
	return ledger.Identity{
		VersionID: i.VersionID, ETag: i.ETag, ModTime: i.ModTime.UTC().Truncate(time.Second), Meta: digest(i), Size: i.Size,
	}
}

// digest sums up the metadata, which ETags do not cover.
func digest(i *bucket.Info) string {
	h := sha256.New()
	fmt.Fprintf(h, "%q", i.ContentType)
	for _, k := range slices.Sorted(maps.Keys(i.Metadata)) {
		fmt.Fprintf(h, " %q=%q", k, i.Metadata[k])
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// recoverPanic takes a panic for an error: one poisonous object must not take the
// others down. The error holds where it happened.
func recoverPanic(what string, f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the %s panicked: %q at %s", what, fmt.Sprint(p), panickedAt())
		}
	}()
	return f()
}

// panickedAt returns the line of the panic that is being recovered.
func panickedAt() string {
	pcs := make([]uintptr, 16)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs)])
	for {
		f, more := frames.Next()
		if !strings.HasPrefix(f.Function, "runtime.") {
			return fmt.Sprintf("%s:%d", f.File, f.Line)
		}
		if !more {
			return "unknown location"
		}
	}
}

// uncounted reports that an attempt failed for a reason that does not lie with the
// object. That a store does not answer may be of the object's making once the handler
// has begun: it may be too large for every lease.
func (x *Attempt) uncounted(err error) bool {
	return isOutage(err) || !x.began && (errors.Is(err, bucket.ErrUnavailable) || errors.Is(err, bucket.ErrNoBucket) || errors.Is(err, errMayBeHidden))
}

// hint adds to a store's refusal what a person can do.
func hint(err error) error {
	switch {
	case errors.Is(err, bucket.ErrNoBucket):
		return fmt.Errorf("%w (create the bucket, or correct the configuration)", err)
	case errors.Is(err, bucket.ErrDenied) && !errors.Is(err, bucket.ErrCredentials):
		return fmt.Errorf("%w (grant s3:ListBucket and s3:GetObject on inputs and outputs, s3:PutObject and s3:DeleteObject on outputs: without s3:ListBucket, S3 denies access to missing objects, so Pawl cannot detect removals)", err)
	case errors.Is(err, bucket.ErrInvalid):
		return Permanent(err)
	}
	return err
}
