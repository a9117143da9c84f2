package doctor

import (
	"context"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/event"
)

func checkCreateOnce(ctx context.Context, s *session) (string, error) {
	ref, text := s.ref(createOnce), content()
	absent := bucket.Condition{IfAbsent: true}
	etag, err := s.expectAccepted(ctx, ref, text, absent)
	if err != nil {
		return "", err
	}
	if err := s.expectUnchanged(ctx, ref, absent, snapshot{true, etag, text}); err != nil {
		return "", err
	}
	return s.runRaces(ctx, func(round string) (event.Object, bucket.Condition, error) {
		return s.ref(createOnce + "-race-" + round), absent, nil
	})
}

func checkReplaceMatch(ctx context.Context, s *session) (string, error) {
	ref := s.ref(replaceMatch)
	now, old, err := s.writeTwice(ctx, ref)
	if err != nil {
		return "", err
	}
	if err := s.expectUnchanged(ctx, ref, bucket.Condition{IfMatch: old}, now); err != nil {
		return "", err
	}
	if _, err := s.expectAccepted(ctx, ref, content(), bucket.Condition{IfMatch: now.etag}); err != nil {
		return "", err
	}
	race := s.ref(replaceMatch + "-race")
	return s.runRaces(ctx, func(string) (event.Object, bucket.Condition, error) {
		now, err := s.read(ctx, race)
		if err == nil && !now.exists {
			now.etag, err = s.expectAccepted(ctx, race, content(), bucket.Condition{})
		}
		return race, bucket.Condition{IfMatch: now.etag}, err
	})
}

// writeTwice returns the object and its earlier ETag.
func (s *session) writeTwice(ctx context.Context, ref event.Object) (now snapshot, old string, err error) {
	if old, err = s.expectAccepted(ctx, ref, content(), bucket.Condition{}); err != nil {
		return snapshot{}, "", err
	}
	now = snapshot{exists: true, text: content()}
	if now.etag, err = s.expectAccepted(ctx, ref, now.text, bucket.Condition{}); err != nil {
		return snapshot{}, "", err
	}
	switch {
	case old == "" || now.etag == "":
		return snapshot{}, "", bucket.ErrNoETag
	case old == now.etag:
		return snapshot{}, "", broken("two contents have the same ETag, %q", old)
	}
	return now, old, nil
}

func checkMatchMissing(ctx context.Context, s *session) (string, error) {
	etag, err := s.expectAccepted(ctx, s.ref(matchMissing+"-other"), content(), bucket.Condition{})
	if err != nil {
		return "", err
	}
	missing := bucket.Condition{IfMatch: etag}
	if err := s.expectUnchanged(ctx, s.ref(matchMissing), missing, snapshot{}); err != nil {
		return "", err
	}
	// The store must also reject the ETag that the object had before it was deleted.
	ref := s.ref(matchMissing + "-other")
	if _, err := s.remove(ctx, ref, bucket.Condition{}); err != nil {
		return "", err
	}
	return "", s.expectUnchanged(ctx, ref, missing, snapshot{})
}

func checkDeleteMatch(ctx context.Context, s *session) (string, error) {
	ref := s.ref(deleteMatch)
	was, old, err := s.writeTwice(ctx, ref)
	if err != nil {
		return "", err
	}
	removed, err := s.remove(ctx, ref, bucket.Condition{IfMatch: old})
	if err != nil {
		return "", err
	}
	now, err := s.read(ctx, ref)
	switch {
	case err != nil:
		return "", err
	case !now.exists && removed:
		return "", ignored("a removal with another ETag in If-Match removed the object")
	case !now.exists:
		return "", broken("a removal with another ETag in If-Match was rejected, but it removed the object")
	case now.text != was.text:
		return "", s.stale("after a removal with another ETag in If-Match the object has another content")
	case removed:
		return "", broken("a removal with another ETag in If-Match removed nothing, but the store reported success")
	}
	if removed, err = s.remove(ctx, ref, bucket.Condition{IfMatch: was.etag}); err != nil {
		return "", err
	}
	if now, err = s.read(ctx, ref); err != nil {
		return "", err
	}
	if !removed || now.exists {
		return "", broken("a removal with the object's ETag in If-Match did not remove it")
	}
	return "", nil
}

// The driver removes and adds quotes. The check still detects a store that returns ETags in one
// form and expects another.
func checkQuotedETags(ctx context.Context, s *session) (string, error) {
	ref := s.ref(quotedETags)
	put, err := s.expectAccepted(ctx, ref, content(), bucket.Condition{})
	if err != nil {
		return "", err
	}
	head, err := s.store.Head(ctx, ref)
	if err != nil {
		return "", s.headError(err)
	}
	get, err := s.read(ctx, ref)
	if err != nil {
		return "", err
	}
	listed, err := s.list(ctx)
	if err != nil {
		return "", err
	}
	list, there := listed[ref.Key] // list-after-write checks whether it is listed
	if put == "" || put != head.ETag || put != get.etag || there && put != list {
		return "", broken("PUT returns the ETag %q, HEAD %q, GET %q, LIST %q", put, head.ETag, get.etag, list)
	}
	_, err = s.expectAccepted(ctx, ref, content(), bucket.Condition{IfMatch: put})
	return "", err
}
