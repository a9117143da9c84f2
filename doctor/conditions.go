package doctor

import (
	"context"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/event"
)

func checkCreateOnce(ctx context.Context, l *lab) (string, error) {
	ref, text := l.ref(createOnce), content()
	absent := bucket.Condition{IfAbsent: true}
	etag, err := l.accept(ctx, ref, text, absent)
	if err != nil {
		return "", err
	}
	if err := l.refuse(ctx, ref, absent, seen{true, etag, text}); err != nil {
		return "", err
	}
	return l.races(ctx, func(round string) (event.Object, bucket.Condition, error) {
		return l.ref(createOnce + "-race-" + round), absent, nil
	})
}

func checkReplaceMatch(ctx context.Context, l *lab) (string, error) {
	ref := l.ref(replaceMatch)
	now, old, err := l.replaced(ctx, ref)
	if err != nil {
		return "", err
	}
	if err := l.refuse(ctx, ref, bucket.Condition{IfMatch: old}, now); err != nil {
		return "", err
	}
	if _, err := l.accept(ctx, ref, content(), bucket.Condition{IfMatch: now.etag}); err != nil {
		return "", err
	}
	race := l.ref(replaceMatch + "-race")
	return l.races(ctx, func(string) (event.Object, bucket.Condition, error) {
		now, err := l.look(ctx, race)
		if err == nil && !now.exists {
			now.etag, err = l.accept(ctx, race, content(), bucket.Condition{})
		}
		return race, bucket.Condition{IfMatch: now.etag}, err
	})
}

// replaced writes an object twice, and returns what it is now and the ETag that
// it had before.
func (l *lab) replaced(ctx context.Context, ref event.Object) (now seen, old string, err error) {
	if old, err = l.accept(ctx, ref, content(), bucket.Condition{}); err != nil {
		return seen{}, "", err
	}
	now = seen{exists: true, text: content()}
	if now.etag, err = l.accept(ctx, ref, now.text, bucket.Condition{}); err != nil {
		return seen{}, "", err
	}
	switch {
	case old == "" || now.etag == "":
		return seen{}, "", bucket.ErrNoETag
	case old == now.etag:
		return seen{}, "", broken("two contents have the same ETag, %q", old)
	}
	return now, old, nil
}

func checkMatchMissing(ctx context.Context, l *lab) (string, error) {
	etag, err := l.accept(ctx, l.ref(matchMissing+"-other"), content(), bucket.Condition{})
	if err != nil {
		return "", err
	}
	missing := bucket.Condition{IfMatch: etag}
	if err := l.refuse(ctx, l.ref(matchMissing), missing, seen{}); err != nil {
		return "", err
	}
	// And of an object that was there, and had this very ETag.
	ref := l.ref(matchMissing + "-other")
	if _, err := l.remove(ctx, ref, bucket.Condition{}); err != nil {
		return "", err
	}
	return "", l.refuse(ctx, ref, missing, seen{})
}

func checkDeleteMatch(ctx context.Context, l *lab) (string, error) {
	ref := l.ref(deleteMatch)
	was, old, err := l.replaced(ctx, ref)
	if err != nil {
		return "", err
	}
	removed, err := l.remove(ctx, ref, bucket.Condition{IfMatch: old})
	if err != nil {
		return "", err
	}
	now, err := l.look(ctx, ref)
	switch {
	case err != nil:
		return "", err
	case !now.exists && removed:
		return "", ignored("a removal with another ETag in If-Match removed the object")
	case !now.exists:
		return "", broken("a removal with another ETag in If-Match was refused, and removed the object all the same")
	case now.text != was.text:
		return "", l.stale("after a removal with another ETag in If-Match the object has another content")
	case removed:
		return "", broken("a removal with another ETag in If-Match removed nothing, and was said to have succeeded")
	}
	if removed, err = l.remove(ctx, ref, bucket.Condition{IfMatch: was.etag}); err != nil {
		return "", err
	}
	if now, err = l.look(ctx, ref); err != nil {
		return "", err
	}
	if !removed || now.exists {
		return "", broken("a removal with the object's own ETag in If-Match did not remove it")
	}
	return "", nil
}

// checkQuotedETags compares the ETags without their quotes, which the driver
// takes off and puts on again. A store that tells ETags of another form in one
// of its answers, or wants them in another form, is found all the same.
func checkQuotedETags(ctx context.Context, l *lab) (string, error) {
	ref := l.ref(quotedETags)
	put, err := l.accept(ctx, ref, content(), bucket.Condition{})
	if err != nil {
		return "", err
	}
	head, err := l.store.Head(ctx, ref)
	if err != nil {
		return "", l.lost(err)
	}
	get, err := l.look(ctx, ref)
	if err != nil {
		return "", err
	}
	listed, err := l.list(ctx)
	if err != nil {
		return "", err
	}
	list, there := listed[ref.Key] // whether it is there is another check's
	if put == "" || put != head.ETag || put != get.etag || there && put != list {
		return "", broken("PUT answers the ETag %q, HEAD %q, GET %q, LIST %q", put, head.ETag, get.etag, list)
	}
	_, err = l.accept(ctx, ref, content(), bucket.Condition{IfMatch: put})
	return "", err
}
