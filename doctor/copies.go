package doctor

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/event"
)

// ProveCopies returns the copy methods whose conditions the store honours. It sends about 55
// requests, and needs permission to read, write and delete below prefix. An error means that it
// could not examine the store.
func ProveCopies(ctx context.Context, store bucket.Store, bucketName, prefix string) (proved bucket.CopyMethod, err error) {
	for method, profile := range map[bucket.CopyMethod]Profile{bucket.CopyWhole: wholeCopies, bucket.CopyParts: partCopies} {
		err := Prove(ctx, store, bucketName, prefix, profile)
		switch {
		case err == nil:
			proved |= method
		case !errors.Is(err, bucket.ErrIgnored) && !errors.Is(err, bucket.ErrInvalid):
			return 0, err
		}
	}
	return proved, nil
}

func checkCopy(m bucket.CopyMethod) func(context.Context, *session) (string, error) {
	return func(ctx context.Context, s *session) (string, error) {
		if _, ok := s.store.(bucket.Copier); !ok {
			return "", broken("this driver cannot copy")
		}
		s.method = m
		defer func() { s.method = 0 }()
		err := s.checkCopies(ctx, s.ref(fmt.Sprint("copy-", m)))
		if errors.Is(err, bucket.ErrDenied) {
			err = broken("the store denies copies: %v", err)
		}
		return "", err
	}
}

func (s *session) checkCopies(ctx context.Context, ref event.Object) error {
	if err := s.checkConditions(ctx, ref); err != nil {
		return err
	}
	if err := s.checkChangedSource(ctx, ref); err != nil || s.quick {
		return err
	}
	now, err := s.read(ctx, ref)
	if err != nil {
		return err
	}
	answers, texts, err := s.runRace(ctx, ref, bucket.Condition{IfMatch: now.etag})
	if err != nil {
		return err
	}
	if now, err = s.read(ctx, ref); err != nil {
		return err
	}
	_, err = judgeRace(answers, slices.Index(texts, now.text))
	return err
}

// checkChangedSource also checks the latest copy.
func (s *session) checkChangedSource(ctx context.Context, ref event.Object) error {
	was, err := s.store.Head(ctx, ref)
	if err != nil {
		return s.headError(err)
	}
	if was.Metadata[copiedBy] != "copy" || was.ContentType != "text/plain" {
		return broken("a copy does not have the metadata and the content type of its request")
	}
	source := bucket.Source{Ref: ref, ETag: unusedETag}
	other := s.ref(fmt.Sprint("copy-", s.method, "-changed"))
	_, err = s.sendCopy(ctx, source, other, bucket.Object{Size: was.Size}, bucket.Condition{IfAbsent: true})
	s.noteWrite(other, err)
	switch {
	case err == nil:
		return ignored("it ignores the precondition on the source of a copy")
	case !errors.Is(err, bucket.ErrPrecondition):
		return err
	}
	now, err := s.read(ctx, other)
	if err == nil && now.exists {
		err = broken("a copy whose source has another ETag was rejected, but it landed")
	}
	return err
}

// copiedBy distinguishes a copy from its source.
const copiedBy = "pawl-doctor"

// putCopy writes a source object and copies it to ref.
func (s *session) putCopy(ctx context.Context, ref event.Object, o bucket.Object, c bucket.Condition) (string, error) {
	source := s.ref("source-" + rand.Text())
	o.Metadata, o.ContentType = map[string]string{copiedBy: "source"}, "application/octet-stream"
	// A bucket policy may deny writes without a condition.
	etag, err := s.store.Put(ctx, source, o, bucket.Condition{IfAbsent: true})
	s.noteWrite(source, err)
	if errors.Is(err, bucket.ErrPrecondition) {
		// The key is random, so the object is ours: a proxy sent our write twice.
		if info, headErr := s.store.Head(ctx, source); headErr == nil {
			etag, err = info.ETag, nil
			s.noteWrite(source, nil)
		}
	}
	if err == nil && etag == "" {
		err = bucket.ErrNoETag
	}
	if err != nil {
		return "", err
	}
	copied := bucket.Object{Size: o.Size, ContentType: "text/plain", Metadata: map[string]string{copiedBy: "copy"}}
	return s.sendCopy(ctx, bucket.Source{Ref: source, ETag: etag}, ref, copied, c)
}

func (s *session) sendCopy(ctx context.Context, from bucket.Source, ref event.Object, o bucket.Object, c bucket.Condition) (string, error) {
	return s.store.(bucket.Copier).Copy(ctx, s.method, from, ref, o, c)
}
