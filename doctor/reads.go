package doctor

import (
	"context"
	"errors"
	"fmt"

	"github.com/pawlhq/pawl/bucket"
)

// repeats is how often a read has to show what was just written.
const repeats = 8

func checkReadAfterWrite(ctx context.Context, l *lab) (string, error) {
	ref := l.ref(readAfterWrite)
	// A store, or a cache before it, may remember that there was nothing.
	if now, err := l.look(ctx, ref); err != nil || now.exists {
		return "", errors.Join(err, whenExists(now))
	}
	for range repeats {
		text := content()
		etag, err := l.accept(ctx, ref, text, bucket.Condition{})
		if err != nil {
			return "", err
		}
		now, err := l.look(ctx, ref)
		if err != nil {
			return "", err
		}
		if now.text != text {
			return "", l.stale("a GET does not show what was just written")
		}
		info, err := l.store.Head(ctx, ref)
		if err != nil {
			return "", l.lost(err)
		}
		if info.ETag != etag {
			return "", l.stale("a HEAD does not show what was just written")
		}
	}
	return "", nil
}

// whenExists returns a flaw if an object exists that was never written.
func whenExists(now seen) error {
	if now.exists {
		return broken("there is an object under a key that was never written")
	}
	return nil
}

// lost is the error of a HEAD of an object that is there.
func (l *lab) lost(err error) error {
	if errors.Is(err, bucket.ErrNotFound) {
		return l.stale("a HEAD does not find what was just written")
	}
	return err
}

func checkReadAfterDelete(ctx context.Context, l *lab) (string, error) {
	ref := l.ref(readAfterDelete)
	for range repeats {
		if _, err := l.accept(ctx, ref, content(), bucket.Condition{}); err != nil {
			return "", err
		}
		if _, err := l.look(ctx, ref); err != nil {
			return "", err
		}
		if _, err := l.remove(ctx, ref, bucket.Condition{}); err != nil {
			return "", err
		}
		now, err := l.look(ctx, ref)
		if err != nil {
			return "", err
		}
		if now.exists {
			return "", l.stale("a GET still finds what was just removed")
		}
		if _, err = l.store.Head(ctx, ref); err == nil {
			return "", l.stale("a HEAD still finds what was just removed")
		}
		if !errors.Is(err, bucket.ErrNotFound) {
			return "", err
		}
	}
	return "", nil
}

func checkListAfterWrite(ctx context.Context, l *lab) (string, error) {
	n := repeats
	if l.quick {
		n = 1
	}
	for i := range n {
		ref := l.ref(fmt.Sprint(listAfterWrite, "-", i))
		for _, what := range []string{"written", "replaced"} {
			etag, err := l.accept(ctx, ref, content(), bucket.Condition{})
			if err != nil {
				return "", err
			}
			listed, err := l.list(ctx)
			if err != nil {
				return "", err
			}
			if listed[ref.Key] != etag || etag == "" {
				return "", l.stale("a listing does not show what was just %s", what)
			}
		}
		if i%2 == 0 {
			continue // so that the listing grows
		}
		if _, err := l.remove(ctx, ref, bucket.Condition{}); err != nil {
			return "", err
		}
		listed, err := l.list(ctx)
		if err != nil {
			return "", err
		}
		if _, there := listed[ref.Key]; there {
			return "", l.stale("a listing still shows what was just removed")
		}
	}
	return "", nil
}
