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

// Attempt performs one claim: it pins the output's state, reads the input, calls the handler, and
// publishes the output. If it pinned after the read, a worker that was paused in between would replace a
// newer result with an older one.
//
// All fields except FailAfter, Tracer and Traceparent are required.
type Attempt struct {
	Ledger   *ledger.Ledger
	Objects  bucket.Store
	Pipeline *Pipeline
	Claim    ledger.Claim
	Nonce    func() string // must never repeat
	Now      func() time.Time
	// FailAfter is the running time after which an attempt that a shutdown cancels counts as
	// failed. 0: never.
	FailAfter   time.Duration
	Tracer      Tracer // of steps; may be nil
	Traceparent string // for the handler, if Tracer is nil

	ending          ledger.Ending
	began           bool
	completionAsked bool        // requested by the handler
	finalRow        *ledger.Row // the row after the commit
	pinned          *bucket.Output
	info            bucket.Info
}

const maxMoves = 5

// recheckDelay bounds the delay before the next read of an object that the store may hide.
const recheckDelay = 15 * time.Second

// The match was edited after the event. The location of the output is no longer validated, so the
// object waits.
const unmatched = "the pipeline no longer matches this object: Pawl checks again every hour; pawl redrive --drop removes the row"

const unmatchedRetry = time.Hour

var errMayBeHidden = errors.New("not found, but it changed too recently to count as removed")

var errMoved = errors.New("the object changed during the attempt")

// Run returns the result of the attempt. The caller must cancel ctx with the cause [ErrLeaseLost]
// at the lease's deadline, and call Run only once.
func (x *Attempt) Run(ctx context.Context) engine.Finished {
	fin := engine.Finished{Key: x.Claim.Key, Fence: x.Claim.Fence, Transactional: x.Pipeline.Transactional}
	if context.Cause(ctx) != nil {
		fin.Result = engine.Released
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
	asked := x.Now() // before the request, whose answer may be delayed
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

// An attempt without an output that has called its handler and starts over must call it again,
// because Have does not record the effect.
func (x *Attempt) mustAct(read *ledger.Read, out *ledger.Pinned) bool {
	if x.Pipeline.Transactional {
		return x.Claim.MustCommit(read)
	}
	return out == nil && x.began || x.Claim.MustAct(read, out)
}

func (x *Attempt) pin(ctx context.Context) (_ *ledger.Pinned, err error) {
	if x.Pipeline.Output == nil {
		return nil, nil
	}
	ctx, end := x.step(ctx, "pin")
	defer func() { end(err) }()
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

// A server on a file system may store s3://out/gray/../x elsewhere.
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

func (x *Attempt) read(ctx context.Context) (_ ledger.Read, err error) {
	ctx, end := x.step(ctx, "read")
	defer func() { end(err) }()
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

// In event order, no read shows that a worker with a later lease has already written the output.
// Therefore readEvent checks the lease after the pin.
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

func (x *Attempt) act(ctx context.Context, read *ledger.Read) error {
	if x.pinned != nil && read.Kind == event.Removed {
		return x.remove(ctx)
	}
	// A read after the end of the lease may be newer than the read of the next holder, whose older
	// result would then replace the result of this attempt.
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	t := x.task(read)
	defer t.discard()
	// A transaction without a commit has no effect.
	x.ending.Sent = x.ending.Sent || x.pinned == nil && !x.Pipeline.Transactional
	x.began = true
	err := x.handle(ctx, t)
	if x.Pipeline.Transactional {
		return x.checkCommit(ctx, err)
	}
	if err != nil || x.pinned == nil {
		return err // the effect counts even if the lease has expired
	}
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if t.content == nil {
		return x.remove(ctx)
	}
	return x.publish(ctx, t.content, read)
}

func (x *Attempt) handle(ctx context.Context, t *Task) (err error) {
	ctx, end := x.step(ctx, "act")
	defer func() { end(err) }()
	t.Traceparent = x.Traceparent
	if x.Tracer != nil {
		t.Traceparent = x.Tracer.Traceparent(ctx)
	}
	return recoverPanic("handler of "+x.Pipeline.Name, func() error { return x.Pipeline.Handler.Handle(ctx, t) })
}

func (x *Attempt) publish(ctx context.Context, c *content, read *ledger.Read) (err error) {
	ctx, end := x.step(ctx, "publish")
	defer func() { end(err) }()
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
		copies = 0 // the event's ETag may differ from the content's
	}
	from := bucket.Source{Ref: x.ref(), ETag: x.info.ETag}
	res, err := x.pinned.PublishCopy(ctx, stamp, from, copies, open, c.size(), c.contentType)
	x.sent(res)
	if err != nil {
		return fmt.Errorf("write the output: %w", hint(err))
	}
	return nil
}

func (x *Attempt) remove(ctx context.Context) (err error) {
	ctx, end := x.step(ctx, "publish")
	defer func() { end(err) }()
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
	object.VersionID = cmp.Or(x.info.VersionID, object.VersionID) // info is empty if the object is gone
	return &Task{
		Pipeline: x.Pipeline.Name, Object: object, Kind: read.Kind, Info: x.info,
		Attempt: x.Claim.Number, Fence: x.Claim.Fence, IdempotencyKey: x.Claim.IdempotencyKey(read),
		open: func(ctx context.Context) (io.ReadCloser, error) { return x.open(ctx, read) }, hasOut: x.pinned != nil,
		completion: x.completion,
	}
}

// In event order, open reads the current content.
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
		// The content may be newer than the event. Audits compare what was read.
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

// Identify returns the identity of an object's content.
func Identify(i *bucket.Info) ledger.Identity {
	return ledger.Identity{
		VersionID: i.VersionID, ETag: i.ETag, ModTime: i.ModTime.UTC().Truncate(time.Second), Meta: digest(i), Size: i.Size,
	}
}

// ETags do not cover the metadata.
func digest(i *bucket.Info) string {
	h := sha256.New()
	fmt.Fprintf(h, "%q", i.ContentType)
	for _, k := range slices.Sorted(maps.Keys(i.Metadata)) {
		fmt.Fprintf(h, " %q=%q", k, i.Metadata[k])
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

func recoverPanic(what string, f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the %s panicked: %q at %s", what, fmt.Sprint(p), panickedAt())
		}
	}()
	return f()
}

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

// Once the handler has started, an unavailable store counts, because the object may be too large
// for any lease.
func (x *Attempt) uncounted(err error) bool {
	return isOutage(err) || !x.began && (errors.Is(err, bucket.ErrUnavailable) || errors.Is(err, bucket.ErrNoBucket) || errors.Is(err, errMayBeHidden))
}

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
