package doctor

import (
	"context"
	"errors"
	"fmt"

	"github.com/pawlhq/pawl/bucket"
)

const repeats = 8

func checkReadAfterWrite(ctx context.Context, s *session) (string, error) {
	ref := s.ref(readAfterWrite)
	// A faulty store or cache may remember that the object is missing.
	if now, err := s.read(ctx, ref); err != nil || now.exists {
		return "", errors.Join(err, existsFlaw(now))
	}
	for range repeats {
		text := content()
		etag, err := s.expectAccepted(ctx, ref, text, bucket.Condition{})
		if err != nil {
			return "", err
		}
		now, err := s.read(ctx, ref)
		if err != nil {
			return "", err
		}
		if now.text != text {
			return "", s.stale("a GET does not show the latest write")
		}
		info, err := s.store.Head(ctx, ref)
		if err != nil {
			return "", s.headError(err)
		}
		if info.ETag != etag {
			return "", s.stale("a HEAD does not show the latest write")
		}
	}
	return "", nil
}

func existsFlaw(now snapshot) error {
	if now.exists {
		return broken("an object exists under a key that was never written")
	}
	return nil
}

func (s *session) headError(err error) error {
	if errors.Is(err, bucket.ErrNotFound) {
		return s.stale("a HEAD does not find the object that was just written")
	}
	return err
}

func checkReadAfterDelete(ctx context.Context, s *session) (string, error) {
	ref := s.ref(readAfterDelete)
	for range repeats {
		if _, err := s.expectAccepted(ctx, ref, content(), bucket.Condition{}); err != nil {
			return "", err
		}
		if _, err := s.read(ctx, ref); err != nil {
			return "", err
		}
		if _, err := s.remove(ctx, ref, bucket.Condition{}); err != nil {
			return "", err
		}
		now, err := s.read(ctx, ref)
		if err != nil {
			return "", err
		}
		if now.exists {
			return "", s.stale("a GET still finds a removed object")
		}
		if _, err = s.store.Head(ctx, ref); err == nil {
			return "", s.stale("a HEAD still finds a removed object")
		}
		if !errors.Is(err, bucket.ErrNotFound) {
			return "", err
		}
	}
	return "", nil
}

func checkListAfterWrite(ctx context.Context, s *session) (string, error) {
	n := repeats
	if s.quick {
		n = 1
	}
	for i := range n {
		ref := s.ref(fmt.Sprint(listAfterWrite, "-", i))
		for _, what := range []string{"written", "replaced"} {
			etag, err := s.expectAccepted(ctx, ref, content(), bucket.Condition{})
			if err != nil {
				return "", err
			}
			listed, err := s.list(ctx)
			if err != nil {
				return "", err
			}
			if listed[ref.Key] != etag || etag == "" {
				return "", s.stale("a listing does not show an object that was just %s", what)
			}
		}
		if i%2 == 0 {
			continue // the listing grows
		}
		if _, err := s.remove(ctx, ref, bucket.Condition{}); err != nil {
			return "", err
		}
		listed, err := s.list(ctx)
		if err != nil {
			return "", err
		}
		if _, there := listed[ref.Key]; there {
			return "", s.stale("a listing still shows a removed object")
		}
	}
	return "", nil
}
