package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/cell"
	"github.com/pawlhq/pawl/event"
)

// Profile is a use of a store.
type Profile string

// The known profiles.
const (
	// Everything is the profile of [Examine].
	Everything Profile = "everything"
	// Locks covers locks and updates. It sends 7 requests for one key, and needs permission to
	// read, write and delete.
	Locks Profile = "locks"
	// Archives also needs permission to list.
	Archives Profile = "archives"
)

const (
	wholeCopies Profile = "copies by one request"
	partCopies  Profile = "copies in parts"
)

var consequences = map[Profile]string{
	Locks:    "locks and updates are not safe",
	Archives: "records could be lost, or stored twice",

	wholeCopies: "copies could replace newer objects",
	partCopies:  "copies could replace newer objects",
}

const unusedETag = "0123456789abcdef0123456789abcdef"

// Prove runs the checks of a profile, with few requests and no concurrent writers, and stops at
// the first failure. It writes objects below prefix + ".pawl-doctor/" and removes them.
//
// The error matches [bucket.ErrIgnored] if the store accepts a request that it should reject,
// [bucket.ErrInvalid] if it rejects conditional writes, or another error of package bucket.
func Prove(ctx context.Context, store bucket.Store, bucketName, prefix string, p Profile) error {
	s := newSession(store, bucketName, prefix)
	s.quick = true
	err := s.prove(ctx, p)
	cleaning := s.cleanUp(ctx)
	switch {
	case err == nil:
		return cleaning
	case cleaning != nil:
		err = fmt.Errorf("%w; %w", err, cleaning)
	}
	return fmt.Errorf("checking whether %s supports %s: %w", event.Quote("s3://"+bucketName), p, err)
}

func (s *session) prove(ctx context.Context, p Profile) error {
	for _, c := range checks {
		if !slices.Contains(c.profiles, p) {
			continue
		}
		_, err := c.run(ctx, s)
		f, ok := errors.AsType[*flaw](err)
		if !ok && err != nil {
			return err
		}
		if ok {
			kind := bucket.ErrInvalid
			if f.verdict == Ignored {
				kind = bucket.ErrIgnored
			}
			return fmt.Errorf("%w: %s, so %s: use another store (%q shows details)", kind, f.detail, consequences[p], "pawl doctor s3://"+s.bucket)
		}
	}
	return nil
}

func checkPreconditions(ctx context.Context, s *session) (string, error) {
	return "", s.checkConditions(ctx, s.ref(preconditions))
}

func (s *session) checkConditions(ctx context.Context, ref event.Object) error {
	absent := bucket.Condition{IfAbsent: true}
	if _, err := s.expectRejected(ctx, ref, bucket.Condition{IfMatch: unusedETag}, "If-Match on a missing key"); err != nil {
		return err
	}
	first, err := s.expectAccepted(ctx, ref, content(), absent)
	if err != nil {
		return err
	}
	backOff, err := s.expectRejected(ctx, ref, absent, "If-None-Match")
	if err != nil {
		return err
	}
	old, kept := bucket.Condition{IfMatch: first}, content()
	if first == "" {
		return bucket.ErrNoETag
	}
	if _, err := s.expectAccepted(ctx, ref, kept, old); err != nil {
		return err
	}
	mismatched, err := s.expectRejected(ctx, ref, old, "If-Match")
	if err != nil {
		return err
	}
	now, err := s.read(ctx, ref)
	switch {
	case err != nil:
		return err
	case now.exists && now.etag == "":
		return bucket.ErrNoETag
	case now.text == backOff:
		return ignored("it ignores If-None-Match")
	case now.text == mismatched:
		return ignored("it ignores If-Match")
	case now.text != kept:
		return broken("a read does not show the latest write")
	}
	return nil
}

// expectRejected returns the content that it sent. It does not read the object afterwards.
func (s *session) expectRejected(ctx context.Context, ref event.Object, c bucket.Condition, precondition string) (text string, err error) {
	text = content()
	outcome, _, err := s.write(ctx, ref, text, c, cell.Trust{Refusal: true, Precondition: true})
	if err == nil && outcome == cell.Landed {
		err = ignored("it ignores %s", precondition)
	}
	return text, err
}
