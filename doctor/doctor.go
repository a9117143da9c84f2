// Package doctor proves what an object store honours, before anything relies on
// it: preconditions, also among writers at once; that reads and listings tell
// of what was just written; that no read shows one object's content under
// another's ETag.
//
// A store that silently ignores a precondition answers exactly like one that
// honours it, until two writers meet. So nothing here is concluded from a
// store's name, nor from an answer alone: what was written is read back.
//
// [Examine] is the whole examination. [Prove] makes those checks, in a few requests, that
// one use of a store needs when it begins.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/event"
)

// Verdict says how a check ended.
type Verdict string

// The verdicts.
const (
	OK      Verdict = "ok"
	Ignored Verdict = "ignored" // the store accepts what it should refuse
	Failed  Verdict = "failed"  // the store cannot do it, or does it wrong
	Unclear Verdict = "unclear" // too many answers were lost to say
)

// Check is what was found of one property of the store.
type Check struct {
	Name    string  `json:"name"`  // stable: create-once, …
	Means   string  `json:"means"` // the property, in one sentence
	Verdict Verdict `json:"verdict"`
	// Detail says what was seen. Of a check that is ok it is a note, and may
	// be empty.
	Detail string `json:"detail,omitempty"`
}

// Report is the result of an examination.
type Report struct {
	Bucket   string    `json:"bucket"`
	Prefix   string    `json:"prefix"` // the keys that were written began so; they are gone
	Checks   []Check   `json:"checks"`
	Features []Feature `json:"features"`
}

// Options of an examination. The zero Options will do.
type Options struct {
	// Progress is called before each check, with its name, how many are done
	// and how many there are.
	Progress func(check string, done, total int)
}

// checks are made in this order, those of one profile. A check returns a note; or an error, of which
// flaws and lost answers are verdicts, and others end the examination.
var checks = []struct {
	name, means string
	run         func(context.Context, *session) (note string, err error)
	profiles    []Profile
}{
	{preconditions, "a write is refused where its precondition does not hold", checkPreconditions, []Profile{Locks, Archives}},
	{createOnce, "a write with If-None-Match: * is refused where an object exists, and of writers at once exactly one wins", checkCreateOnce, []Profile{Everything}},
	{replaceMatch, "a write with If-Match is refused where the object has another ETag, and of writers at once exactly one wins", checkReplaceMatch, []Profile{Everything}},
	{matchMissing, "a write with If-Match is refused where no object exists", checkMatchMissing, []Profile{Everything}},
	{deleteMatch, "a removal with If-Match removes nothing where the object has another ETag", checkDeleteMatch, []Profile{Everything}},
	{quotedETags, "an object has one ETag in the answers to PUT, HEAD, GET and LIST, and If-Match with it holds", checkQuotedETags, []Profile{Everything}},
	{readAfterWrite, "what was written is read at once", checkReadAfterWrite, []Profile{Everything}},
	{listAfterWrite, "a listing tells at once of what was written and removed", checkListAfterWrite, []Profile{Everything, Archives}},
	{readAfterDelete, "what was removed is gone at once", checkReadAfterDelete, []Profile{Everything}},
	{expiredSignature, "a presigned write is refused once its signature has expired", checkExpiredSignature, []Profile{Everything, Archives}},
	{copyWhole, "a copy by one request is refused where its precondition or that of its source does not hold", checkCopy(bucket.CopyWhole), []Profile{Everything, wholeCopies}},
	{copyParts, "a copy by an upload in parts is refused where its precondition or that of its source does not hold", checkCopy(bucket.CopyParts), []Profile{Everything, partCopies}},
	{wholeReads, "a read during writes has no older content than its ETag, and no part of one", checkWholeReads, []Profile{Everything}},
}

// The names of the checks.
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

// Examine makes all checks in the bucket, with about a thousand requests. It
// writes keys that begin with prefix, ".pawl-doctor/" and a random text, and
// removes them at the end, whatever happens; for that it needs up to half a
// minute more when ctx ends. In a bucket that keeps versions theirs remain.
//
// The error is what kept it from examining, and matches ErrNoBucket, ErrDenied,
// ErrInvalid, ErrUnavailable or ErrUnclear of package bucket, or the cause that
// ended ctx. There is a report beside it if only the cleaning up failed.
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

// total is the number of checks of an examination.
var total = func() (n int) {
	for _, c := range checks {
		if slices.Contains(c.profiles, Everything) {
			n++
		}
	}
	return n
}()

// ended returns the error of an examination that could not go on.
func (s *session) abortError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return fmt.Errorf("examining %s: %w", event.Quote("s3://"+s.bucket), err)
}

// flaw is a promise that the store does not keep.
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

// judgeError returns the verdict of a check that ended with err. It is not ok
// if the examination cannot go on.
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
		// The first write was accepted, so the store refuses the condition.
		return Failed, true
	case errors.Is(err, bucket.ErrUnclear), errors.Is(err, bucket.ErrConflict):
		return Unclear, true
	}
	return "", false
}
