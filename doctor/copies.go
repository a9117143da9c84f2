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

// ProveCopies returns the methods by which the store copies objects and honours conditions,
// so that [bucket.Output.PublishCopy] may use them. It takes about 55 requests, and the
// permissions to read, write and remove below prefix. The error says that the store could
// not be examined.
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

// checkCopy returns the check of a method.
func checkCopy(m bucket.CopyMethod) func(context.Context, *lab) (string, error) {
	return func(ctx context.Context, l *lab) (string, error) {
		if _, ok := l.store.(bucket.Copier); !ok {
			return "", broken("this driver cannot copy")
		}
		l.method = m
		defer func() { l.method = 0 }()
		err := l.copies(ctx, l.ref(fmt.Sprint("copy-", m)))
		if errors.Is(err, bucket.ErrDenied) {
			err = broken("the store denies copies: %v", err)
		}
		return "", err
	}
}

// copies makes the checks of the lab's method, on one object.
func (l *lab) copies(ctx context.Context, ref event.Object) error {
	if err := l.preconditions(ctx, ref); err != nil {
		return err
	}
	if err := l.changedSource(ctx, ref); err != nil || l.quick {
		return err
	}
	now, err := l.look(ctx, ref)
	if err != nil {
		return err
	}
	answers, texts, err := l.race(ctx, ref, bucket.Condition{IfMatch: now.etag})
	if err != nil {
		return err
	}
	if now, err = l.look(ctx, ref); err != nil {
		return err
	}
	_, err = judgeRace(answers, slices.Index(texts, now.text))
	return err
}

// changedSource examines what the last copy left, and copies a source whose ETag is another.
func (l *lab) changedSource(ctx context.Context, ref event.Object) error {
	was, err := l.store.Head(ctx, ref)
	if err != nil {
		return l.lost(err)
	}
	if was.Metadata[copiedBy] != "copy" || was.ContentType != "text/plain" {
		return broken("a copy does not have the metadata and the content type of its request")
	}
	source := bucket.Source{Ref: ref, ETag: anETag}
	other := l.ref(fmt.Sprint("copy-", l.method, "-changed"))
	_, err = l.sendCopy(ctx, source, other, bucket.Object{Size: was.Size}, bucket.Condition{IfAbsent: true})
	l.mark(other, err)
	switch {
	case err == nil:
		return ignored("it ignores the precondition on the source of a copy")
	case !errors.Is(err, bucket.ErrPrecondition):
		return err
	}
	now, err := l.look(ctx, other)
	if err == nil && now.exists {
		err = broken("a copy whose source has another ETag was refused, but landed")
	}
	return err
}

// copiedBy is the metadata that tells a copy from its source.
const copiedBy = "pawl-doctor"

// putCopy writes an object elsewhere, and then copies it to ref on the condition.
func (l *lab) putCopy(ctx context.Context, ref event.Object, o bucket.Object, c bucket.Condition) (string, error) {
	source := l.ref("source-" + rand.Text())
	o.Metadata, o.ContentType = map[string]string{copiedBy: "source"}, "application/octet-stream"
	// A bucket policy may deny writes without a condition.
	etag, err := l.store.Put(ctx, source, o, bucket.Condition{IfAbsent: true})
	l.mark(source, err)
	if errors.Is(err, bucket.ErrPrecondition) {
		// The key is random: it is our write, which a proxy sent twice.
		if info, headErr := l.store.Head(ctx, source); headErr == nil {
			etag, err = info.ETag, nil
			l.mark(source, nil)
		}
	}
	if err == nil && etag == "" {
		err = bucket.ErrNoETag
	}
	if err != nil {
		return "", err
	}
	copied := bucket.Object{Size: o.Size, ContentType: "text/plain", Metadata: map[string]string{copiedBy: "copy"}}
	return l.sendCopy(ctx, bucket.Source{Ref: source, ETag: etag}, ref, copied, c)
}

func (l *lab) sendCopy(ctx context.Context, from bucket.Source, ref event.Object, o bucket.Object, c bucket.Condition) (string, error) {
	return l.store.(bucket.Copier).Copy(ctx, l.method, from, ref, o, c)
}
