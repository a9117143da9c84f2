// Package doctor tests which guarantees an object store provides: preconditions, even with
// concurrent writers, reads and listings of the latest write, and contents that match their
// ETags.
//
// A store that silently ignores a precondition answers like a correct one until two writers
// conflict. Therefore each check reads back what it wrote.
//
// [Examine] runs all checks. [Prove] runs those that one use of a store needs at startup.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/event"
)

// Verdict is the result of a check.
type Verdict string

// The verdicts.
const (
	OK      Verdict = "ok"
	Ignored Verdict = "ignored" // the store accepts a request that it should reject
	Failed  Verdict = "failed"  // the store lacks the property
	Unclear Verdict = "unclear" // too many responses were lost
)

// Check is the result for one property of the store.
type Check struct {
	Name    string  `json:"name"`  // stable, for example create-once
	Means   string  `json:"means"` // the property, in one sentence
	Verdict Verdict `json:"verdict"`
	// Detail may be empty if the verdict is OK.
	Detail string `json:"detail,omitempty"`
}

// Report is the result of an examination.
type Report struct {
	Bucket   string    `json:"bucket"`
	Prefix   string    `json:"prefix"` // of all keys that the examination wrote and removed
	Checks   []Check   `json:"checks"`
	Features []Feature `json:"features"`
}

// Options configure an examination. All fields are optional.
type Options struct {
	// Progress, if set, is called before each check.
	Progress func(check string, done, total int)
}

// checks run in this order. If the error of a check is a flaw or a lost response, it becomes the
// verdict. Any other error ends the examination.
var checks = []struct {
	name, means string
	run         func(context.Context, *session) (note string, err error)
	profiles    []Profile
}{
	{preconditions, "a write is rejected if its precondition does not hold", checkPreconditions, []Profile{Locks, Archives}},
	{createOnce, "a write with If-None-Match: * is rejected if the object exists, and exactly one of several concurrent writers succeeds", checkCreateOnce, []Profile{Everything}},
	{replaceMatch, "a write with If-Match is rejected if the object has another ETag, and exactly one of several concurrent writers succeeds", checkReplaceMatch, []Profile{Everything}},
	{matchMissing, "a write with If-Match is rejected if the object does not exist", checkMatchMissing, []Profile{Everything}},
	{deleteMatch, "a removal with If-Match removes nothing if the object has another ETag", checkDeleteMatch, []Profile{Everything}},
	{quotedETags, "PUT, HEAD, GET and LIST return the same ETag, and If-Match accepts it", checkQuotedETags, []Profile{Everything}},
	{readAfterWrite, "a read shows the latest write immediately", checkReadAfterWrite, []Profile{Everything}},
	{listAfterWrite, "a listing shows writes and removals immediately", checkListAfterWrite, []Profile{Everything, Archives}},
	{readAfterDelete, "a removed object is gone immediately", checkReadAfterDelete, []Profile{Everything}},
	{expiredSignature, "a presigned write is rejected after its signature has expired", checkExpiredSignature, []Profile{Everything, Archives}},
	{copyWhole, "a copy with one request is rejected if its precondition or the precondition on its source does not hold", checkCopy(bucket.CopyWhole), []Profile{Everything, wholeCopies}},
	{copyParts, "a multipart copy is rejected if its precondition or the precondition on its source does not hold", checkCopy(bucket.CopyParts), []Profile{Everything, partCopies}},
	{wholeReads, "a read during concurrent writes returns complete content that is not older than its ETag", checkWholeReads, []Profile{Everything}},
}

const (
	preconditions    = "preconditions"
	createOnce       = "create-once"
	replaceMatch     = "replace-match"
	matchMissing     = "match-missing"
	deleteMatch      = "delete-match"
	quotedETags      = "quoted-etags"
	readAfterWrite   = "read-after-write"
	listAfterWrite   = "list-after-write"
	readAfterDelete  = "read-after-delete"
	expiredSignature = "expired-signature"
	copyWhole        = "copy-whole"
	copyParts        = "copy-parts"
	wholeReads       = "whole-reads"
)

// Examine runs all checks in the bucket, with about a thousand requests. It writes keys below
// prefix + ".pawl-doctor/" and removes them at the end, even after an error, within 30 s. A
// versioned bucket keeps the old versions.
//
// An error means that Examine could not examine the store. It matches ErrNoBucket, ErrDenied,
// ErrInvalid, ErrUnavailable or ErrUnclear of package bucket, or the cancellation cause of ctx.
// If only the cleanup failed, Examine also returns a report.
func Examine(ctx context.Context, store bucket.Store, bucketName, prefix string, o Options) (r *Report, err error) {
	s := newSession(store, bucketName, prefix)
	if err := s.ref("examined").CheckPath(); err != nil {
		return nil, fmt.Errorf("the prefix %s: %w: %w", event.Quote(prefix), bucket.ErrInvalid, err)
	}
	defer func() { err = errors.Join(err, s.cleanUp(ctx)) }()
	if err := s.preflight(ctx); err != nil {
		return nil, s.abortError(ctx, err)
	}
	found := []Check{}
	for _, c := range checks {
		if !slices.Contains(c.profiles, Everything) {
			continue
		}
		if o.Progress != nil {
			o.Progress(c.name, len(found), total)
		}
		note, err := c.run(ctx, s)
		verdict, ok := judgeError(err)
		if !ok || ctx.Err() != nil {
			return nil, s.abortError(ctx, err)
		}
		if err != nil {
			note = err.Error()
		}
		found = append(found, Check{Name: c.name, Means: c.means, Verdict: verdict, Detail: note})
	}
	return &Report{Bucket: bucketName, Prefix: s.prefix, Checks: found, Features: features(found)}, nil
}

var total = func() (n int) {
	for _, c := range checks {
		if slices.Contains(c.profiles, Everything) {
			n++
		}
	}
	return n
}()

func (s *session) abortError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return fmt.Errorf("examining %s: %w", event.Quote("s3://"+s.bucket), err)
}

// A flaw means that the store lacks the tested property.
type flaw struct {
	verdict Verdict
	detail  string
}

func (f *flaw) Error() string { return f.detail }

func ignored(format string, args ...any) error {
	return &flaw{Ignored, fmt.Sprintf(format, args...)}
}

func broken(format string, args ...any) error {
	return &flaw{Failed, fmt.Sprintf(format, args...)}
}

// If ok is false, the examination must end.
func judgeError(err error) (v Verdict, ok bool) {
	var f *flaw
	switch {
	case err == nil:
		return OK, true
	case errors.As(err, &f):
		return f.verdict, true
	case errors.Is(err, bucket.ErrNoETag):
		return Failed, true
	case errors.Is(err, bucket.ErrInvalid):
		// The store accepted the first write, so it does not support the condition.
		return Failed, true
	case errors.Is(err, bucket.ErrUnclear), errors.Is(err, bucket.ErrConflict):
		return Unclear, true
	}
	return "", false
}
