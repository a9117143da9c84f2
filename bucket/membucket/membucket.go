// Package membucket implements bucket.Store in memory, for tests and experiments.
package membucket

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/event"
)

const maxKey = 1024

// Store stores buckets in memory. It is safe for concurrent use.
type Store struct {
	now func() time.Time

	mu      sync.Mutex
	next    int // last version ID
	buckets map[string]*keyspace
}

type keyspace struct {
	versions bool
	objects  map[string][]object // latest version last
}

var _ bucket.Store = (*Store)(nil)

// The data of an object never changes.
type object struct {
	info    bucket.Info
	data    []byte
	removed bool // a delete marker
}

// Option configures a new Store.
type Option func(*Store)

// WithVersioned adds empty buckets with versioning.
func WithVersioned(buckets ...string) Option {
	return func(s *Store) {
		for _, b := range buckets {
			s.buckets[b] = &keyspace{versions: true, objects: map[string][]object{}}
		}
	}
}

// New returns a store with a clock and empty buckets.
func New(now func() time.Time, buckets []string, opts ...Option) *Store {
	s := &Store{now: now, buckets: map[string]*keyspace{}}
	for _, b := range buckets {
		s.buckets[b] = &keyspace{objects: map[string][]object{}}
	}
	for _, o := range opts {
		o(s)
	}
	return s
}

// Head implements [bucket.Store].
func (s *Store) Head(ctx context.Context, ref event.Object) (bucket.Info, error) {
	o, err := s.find(ctx, ref)
	if err != nil {
		return bucket.Info{}, fmt.Errorf("reading the metadata of %s: %w", name(ref), err)
	}
	return o.copyInfo(), nil
}

// Get implements [bucket.Store].
func (s *Store) Get(ctx context.Context, ref event.Object) (bucket.Info, io.ReadCloser, error) {
	o, err := s.find(ctx, ref)
	if err != nil {
		return bucket.Info{}, nil, fmt.Errorf("reading %s: %w", name(ref), err)
	}
	return o.copyInfo(), io.NopCloser(bytes.NewReader(o.data)), nil
}

func (s *Store) find(ctx context.Context, ref event.Object) (object, error) {
	if err := ctx.Err(); err != nil {
		return object{}, fmt.Errorf("%w: %w", bucket.ErrUnavailable, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	b, err := s.keyspace(ref)
	if err != nil {
		return object{}, err
	}
	versions := b.objects[ref.Key]
	if ref.VersionID != "" {
		versions = versions[:indexVersion(versions, ref.VersionID)+1]
	}
	if o, ok := latest(versions); ok {
		return o, nil
	}
	return object{}, bucket.ErrNotFound
}

// List implements [bucket.Store]. It yields a snapshot.
func (s *Store) List(ctx context.Context, name, prefix, startAfter string) iter.Seq2[bucket.Info, error] {
	return func(yield func(bucket.Info, error) bool) {
		found, err := s.list(name, prefix, startAfter)
		if err != nil {
			yield(bucket.Info{}, fmt.Errorf("listing %s: %w", event.Quote("s3://"+name+"/"+prefix), err))
			return
		}
		for _, info := range found {
			if err := ctx.Err(); err != nil {
				yield(bucket.Info{}, fmt.Errorf("listing %s: %w: %w", event.Quote("s3://"+name+"/"+prefix), bucket.ErrUnavailable, err))
				return
			}
			if !yield(info, nil) {
				return
			}
		}
	}
}

func (s *Store) list(name, prefix, startAfter string) ([]bucket.Info, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, ok := s.buckets[name]
	if !ok {
		return nil, bucket.ErrNoBucket
	}
	var found []bucket.Info
	for _, key := range slices.Sorted(maps.Keys(b.objects)) {
		o, ok := latest(b.objects[key])
		if !ok || key <= startAfter || !strings.HasPrefix(key, prefix) {
			continue
		}
		info := o.info
		info.VersionID, info.ContentType, info.Headers, info.Metadata = "", "", bucket.Headers{}, nil
		found = append(found, info)
	}
	return found, nil
}

// The caller of keyspace holds the mutex.
func (s *Store) keyspace(ref event.Object) (*keyspace, error) {
	if ref.Key == "" || len(ref.Key) > maxKey {
		return nil, fmt.Errorf("%w: the key has %d bytes, want 1 to %d", bucket.ErrInvalid, len(ref.Key), maxKey)
	}
	b, ok := s.buckets[ref.Bucket]
	if !ok {
		return nil, bucket.ErrNoBucket
	}
	return b, nil
}

func latest(versions []object) (object, bool) {
	if len(versions) == 0 {
		return object{}, false
	}
	o := versions[len(versions)-1]
	return o, !o.removed
}

func indexVersion(versions []object, id string) int {
	return slices.IndexFunc(versions, func(o object) bool { return o.info.VersionID == id })
}

func (o object) copyInfo() bucket.Info {
	info := o.info
	info.Metadata = make(map[string]string, len(o.info.Metadata))
	maps.Copy(info.Metadata, o.info.Metadata)
	return info
}

func name(ref event.Object) string { return ref.String() }
