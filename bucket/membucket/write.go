package membucket

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/event"
)

// Put implements [bucket.Store].
func (s *Store) Put(ctx context.Context, ref event.Object, o bucket.Object, c bucket.Condition) (string, error) {
	etag, err := s.put(ctx, ref, o, c)
	if err != nil {
		return "", fmt.Errorf("writing %s: %w", name(ref), err)
	}
	return etag, nil
}

var _ bucket.Expirer = (*Store)(nil)

// PutSigned implements [bucket.Expirer].
func (s *Store) PutSigned(ctx context.Context, ref event.Object, o bucket.Object, c bucket.Condition, signed time.Time, valid time.Duration) (string, error) {
	if s.now().After(signed.Add(valid)) {
		return "", fmt.Errorf("writing %s: %w", name(ref), bucket.ErrExpired)
	}
	return s.Put(ctx, ref, o, c)
}

// StoreTime implements [bucket.Expirer].
func (s *Store) StoreTime(time.Time) time.Time { return s.now().Truncate(time.Second) }

func (s *Store) put(ctx context.Context, ref event.Object, o bucket.Object, c bucket.Condition) (string, error) {
	if err := o.Check(); err != nil {
		return "", err
	}
	data, err := readExactly(o)
	if err != nil {
		return "", err
	}
	if err := ctx.Err(); err != nil {
		return "", fmt.Errorf("%w: %w", bucket.ErrUnclear, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	b, err := s.keyspace(ref)
	if err != nil {
		return "", err
	}
	if err := checkCondition(b.objects[ref.Key], c); err != nil {
		return "", err
	}
	sum := md5.Sum(data)
	info := bucket.Info{
		Key:         ref.Key,
		VersionID:   s.versionID(b),
		ETag:        hex.EncodeToString(sum[:]),
		ModTime:     s.now().UTC().Truncate(time.Second),
		Size:        int64(len(data)),
		ContentType: o.ContentType,
		Headers:     o.Headers,
		Metadata:    maps.Clone(o.Metadata),
	}
	if info.ContentType == "" {
		info.ContentType = "application/octet-stream"
	}
	b.add(ref.Key, object{info: info, data: data})
	return info.ETag, nil
}

var _ bucket.Copier = (*Store)(nil)

// Copy implements [bucket.Copier]. Both copy methods do the same.
func (s *Store) Copy(ctx context.Context, _ bucket.CopyMethod, from bucket.Source, ref event.Object, o bucket.Object, c bucket.Condition) (string, error) {
	source, err := s.find(ctx, from.Ref)
	switch {
	case errors.Is(err, bucket.ErrNotFound), err == nil && source.info.ETag != from.ETag:
		return "", fmt.Errorf("copying %s: %w: the source has changed", name(ref), bucket.ErrPrecondition)
	case err != nil:
		return "", fmt.Errorf("copying %s: %w", name(ref), err)
	}
	o.Body, o.Size = bytes.NewReader(source.data), int64(len(source.data))
	return s.Put(ctx, ref, o, c)
}

// Delete implements [bucket.Store].
func (s *Store) Delete(ctx context.Context, ref event.Object, c bucket.Condition) error {
	if err := s.remove(ctx, ref, c); err != nil {
		return fmt.Errorf("removing %s: %w", name(ref), err)
	}
	return nil
}

func (s *Store) remove(ctx context.Context, ref event.Object, c bucket.Condition) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%w: %w", bucket.ErrUnclear, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	b, err := s.keyspace(ref)
	if err != nil {
		return err
	}
	versions := b.objects[ref.Key]
	if err := checkCondition(versions, c); err != nil {
		return err
	}
	switch i := indexVersion(versions, ref.VersionID); {
	case ref.VersionID != "" && i >= 0:
		b.objects[ref.Key] = slices.Delete(slices.Clone(versions), i, i+1)
	case ref.VersionID != "":
	case b.versions:
		b.add(ref.Key, object{info: bucket.Info{Key: ref.Key, VersionID: s.versionID(b)}, removed: true})
	default:
		delete(b.objects, ref.Key)
	}
	return nil
}

func (b *keyspace) add(key string, o object) {
	if b.versions {
		b.objects[key] = append(b.objects[key], o)
		return
	}
	b.objects[key] = []object{o}
}

// versionID returns "" for a bucket without versioning.
func (s *Store) versionID(b *keyspace) string {
	if !b.versions {
		return ""
	}
	s.next++
	return "v" + strconv.Itoa(s.next)
}

func checkCondition(versions []object, c bucket.Condition) error {
	o, exists := latest(versions)
	switch {
	case c.IfAbsent && exists:
		return fmt.Errorf("%w: the object exists", bucket.ErrPrecondition)
	case c.IfMatch != "" && !exists:
		return fmt.Errorf("%w: the object does not exist", bucket.ErrPrecondition)
	case c.IfMatch != "" && o.info.ETag != c.IfMatch:
		return fmt.Errorf("%w: the object has another ETag", bucket.ErrPrecondition)
	}
	return nil
}

func readExactly(o bucket.Object) ([]byte, error) {
	if o.Body == nil {
		o.Body = bytes.NewReader(nil)
	}
	data, err := io.ReadAll(io.LimitReader(o.Body, o.Size+1))
	if err != nil {
		return nil, fmt.Errorf("%w: reading the body: %w", bucket.ErrUnclear, err)
	}
	if int64(len(data)) != o.Size {
		return nil, fmt.Errorf("%w: the body is not %d bytes long, as declared", bucket.ErrInvalid, o.Size)
	}
	return data, nil
}
