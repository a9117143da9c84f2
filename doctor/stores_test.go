package doctor_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"iter"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/bucket/membucket"
	"github.com/pawlhq/pawl/event"
)

const name = "b"

func memory() bucket.Store { return membucket.New(time.Now, []string{name}) }

// A nil function calls the wrapped store.
type altered struct {
	bucket.Store
	head   func(ctx context.Context, ref event.Object) (bucket.Info, error)
	get    func(ctx context.Context, ref event.Object) (bucket.Info, io.ReadCloser, error)
	put    func(ctx context.Context, ref event.Object, o bucket.Object, c bucket.Condition) (string, error)
	remove func(ctx context.Context, ref event.Object, c bucket.Condition) error
	list   func(ctx context.Context, bucketName, prefix, after string) iter.Seq2[bucket.Info, error]

	copy copyFunc

	forever bool
}

type copyFunc func(ctx context.Context, m bucket.CopyMethod, from bucket.Source, ref event.Object, o bucket.Object, c bucket.Condition) (string, error)

// Copy implements [bucket.Copier].
func (a *altered) Copy(ctx context.Context, m bucket.CopyMethod, from bucket.Source, ref event.Object, o bucket.Object, c bucket.Condition) (string, error) {
	if a.copy != nil {
		return a.copy(ctx, m, from, ref, o, c)
	}
	return a.Store.(bucket.Copier).Copy(ctx, m, from, ref, o, c)
}

func copying(change func(from bucket.Source, o bucket.Object, c bucket.Condition, exists bool) (bucket.Source, bucket.Object, bucket.Condition, error)) *altered {
	s := &altered{Store: memory()}
	s.copy = func(ctx context.Context, m bucket.CopyMethod, from bucket.Source, ref event.Object, o bucket.Object, c bucket.Condition) (string, error) {
		if m == bucket.CopyWhole {
			var err error
			if from, o, c, err = change(from, o, c, exists(s.Store, ref)); err != nil {
				return "", err
			}
		}
		return s.Store.(bucket.Copier).Copy(ctx, m, from, ref, o, c)
	}
	return s
}

func copyingUnchecked(drop func(c *bucket.Condition, exists bool)) *altered {
	return copying(func(from bucket.Source, o bucket.Object, c bucket.Condition, exists bool) (bucket.Source, bucket.Object, bucket.Condition, error) {
		drop(&c, exists)
		return from, o, c, nil
	})
}

func copyingAny() *altered {
	s := &altered{Store: memory()}
	s.copy = func(ctx context.Context, m bucket.CopyMethod, from bucket.Source, ref event.Object, o bucket.Object, c bucket.Condition) (string, error) {
		info, err := s.Store.Head(ctx, from.Ref)
		if err != nil {
			return "", err
		}
		from.ETag = info.ETag
		return s.Store.(bucket.Copier).Copy(ctx, m, from, ref, o, c)
	}
	return s
}

func letTwoCopy() *altered {
	s := &altered{Store: memory()}
	var mu sync.Mutex
	wins := make(map[string]int)
	s.copy = func(ctx context.Context, m bucket.CopyMethod, from bucket.Source, ref event.Object, o bucket.Object, c bucket.Condition) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		id := fmt.Sprint(ref.Key, c)
		if wins[id]++; wins[id] == 4 {
			c = bucket.Condition{} // both writers pass the check before one lands
		}
		return s.Store.(bucket.Copier).Copy(ctx, m, from, ref, o, c)
	}
	return s
}

// PutSigned implements [bucket.Expirer].
func (a *altered) PutSigned(ctx context.Context, ref event.Object, o bucket.Object, c bucket.Condition, signed time.Time, valid time.Duration) (string, error) {
	if !a.forever && time.Since(signed) > valid {
		return "", bucket.ErrExpired
	}
	return a.Put(ctx, ref, o, c)
}

// StoreTime implements [bucket.Expirer].
func (*altered) StoreTime(now time.Time) time.Time { return now }

func (a *altered) Head(ctx context.Context, ref event.Object) (bucket.Info, error) {
	if a.head != nil {
		return a.head(ctx, ref)
	}
	return a.Store.Head(ctx, ref)
}

func (a *altered) Get(ctx context.Context, ref event.Object) (bucket.Info, io.ReadCloser, error) {
	if a.get != nil {
		return a.get(ctx, ref)
	}
	return a.Store.Get(ctx, ref)
}

func (a *altered) Put(ctx context.Context, ref event.Object, o bucket.Object, c bucket.Condition) (string, error) {
	if a.put != nil {
		return a.put(ctx, ref, o, c)
	}
	return a.Store.Put(ctx, ref, o, c)
}

func (a *altered) Delete(ctx context.Context, ref event.Object, c bucket.Condition) error {
	if a.remove != nil {
		return a.remove(ctx, ref, c)
	}
	return a.Store.Delete(ctx, ref, c)
}

func (a *altered) List(ctx context.Context, bucketName, prefix, after string) iter.Seq2[bucket.Info, error] {
	if a.list != nil {
		return a.list(ctx, bucketName, prefix, after)
	}
	return a.Store.List(ctx, bucketName, prefix, after)
}

func exists(s bucket.Store, ref event.Object) bool {
	_, err := s.Head(context.Background(), ref)
	return err == nil
}

func ignoringIfNoneMatch() *altered {
	s := &altered{Store: memory()}
	s.put = func(ctx context.Context, ref event.Object, o bucket.Object, c bucket.Condition) (string, error) {
		c.IfAbsent = false
		return s.Store.Put(ctx, ref, o, c)
	}
	return s
}

// ignoringIfMatch ignores If-Match for existing objects only.
func ignoringIfMatch() *altered {
	s := &altered{Store: memory()}
	s.put = func(ctx context.Context, ref event.Object, o bucket.Object, c bucket.Condition) (string, error) {
		if exists(s.Store, ref) {
			c.IfMatch = ""
		}
		return s.Store.Put(ctx, ref, o, c)
	}
	return s
}

func creatingOnIfMatch() *altered {
	s := &altered{Store: memory()}
	s.put = func(ctx context.Context, ref event.Object, o bucket.Object, c bucket.Condition) (string, error) {
		if !exists(s.Store, ref) {
			c.IfMatch = ""
		}
		return s.Store.Put(ctx, ref, o, c)
	}
	return s
}

func ignoringOnDelete() *altered {
	s := &altered{Store: memory()}
	s.remove = func(ctx context.Context, ref event.Object, _ bucket.Condition) error {
		return s.Store.Delete(ctx, ref, bucket.Condition{})
	}
	return s
}

// letTwoWin runs the second writer of a race between the check and the write of the first.
func letTwoWin(race string) *altered {
	s := &altered{Store: memory()}
	var mu sync.Mutex
	wins := make(map[string]int)
	s.put = func(ctx context.Context, ref event.Object, o bucket.Object, c bucket.Condition) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		if c != (bucket.Condition{}) && strings.Contains(ref.Key, race) {
			id := fmt.Sprint(ref.Key, c)
			if wins[id]++; wins[id] == 2 {
				c = bucket.Condition{}
			}
		}
		return s.Store.Put(ctx, ref, o, c)
	}
	return s
}

// remembering keeps the earlier version of each object.
type remembering struct {
	altered
	mu     sync.Mutex
	before map[string]version
}

type version struct {
	info bucket.Info
	text []byte
}

func (v version) read() (bucket.Info, io.ReadCloser, error) {
	return v.info, io.NopCloser(bytes.NewReader(v.text)), nil
}

func newRemembering() *remembering {
	r := &remembering{altered: altered{Store: memory()}, before: make(map[string]version)}
	r.put = func(ctx context.Context, ref event.Object, o bucket.Object, c bucket.Condition) (string, error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.remember(ctx, ref)
		return r.Store.Put(ctx, ref, o, c)
	}
	r.remove = func(ctx context.Context, ref event.Object, c bucket.Condition) error {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.remember(ctx, ref)
		return r.Store.Delete(ctx, ref, c)
	}
	return r
}

func (r *remembering) remember(ctx context.Context, ref event.Object) {
	info, body, err := r.Store.Get(ctx, ref)
	if err != nil {
		return
	}
	text, err := io.ReadAll(body)
	if err != nil {
		panic(err)
	}
	r.before[ref.Key] = version{info, text}
}

// In readingBefore, a GET returns the earlier version if old returns true.
func readingBefore(key string, old func(before, now bucket.Info, found bool) bool) *remembering {
	r := newRemembering()
	r.get = func(ctx context.Context, ref event.Object) (bucket.Info, io.ReadCloser, error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		info, body, err := r.Store.Get(ctx, ref)
		before, known := r.before[ref.Key]
		if known && strings.Contains(ref.Key, key) && old(before.info, info, err == nil) {
			return before.read()
		}
		return info, body, err
	}
	return r
}

// mixing returns older content with a newer ETag, or vice versa.
func mixing(newer bool) *remembering {
	r := newRemembering()
	r.get = func(ctx context.Context, ref event.Object) (bucket.Info, io.ReadCloser, error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		info, body, err := r.Store.Get(ctx, ref)
		before, known := r.before[ref.Key]
		switch {
		case err != nil || !known || !strings.Contains(ref.Key, "whole-reads"):
		case newer:
			info.ETag = before.info.ETag
		default:
			info.Size = before.info.Size
			body = io.NopCloser(bytes.NewReader(before.text))
		}
		return info, body, err
	}
	return r
}

// cutting cuts the content to the earlier length.
func cutting() *remembering {
	r := newRemembering()
	r.get = func(ctx context.Context, ref event.Object) (bucket.Info, io.ReadCloser, error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		info, body, err := r.Store.Get(ctx, ref)
		before, known := r.before[ref.Key]
		if err == nil && known && strings.Contains(ref.Key, "whole-reads") {
			body = io.NopCloser(io.LimitReader(body, before.info.Size))
		}
		return info, body, err
	}
	return r
}

func left(t *testing.T, s bucket.Store) (keys []string) {
	t.Helper()
	for info, err := range s.List(context.Background(), name, "", "") {
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, info.Key)
	}
	return keys
}

// In lateLanding, an interrupted write lands a second later.
func lateLanding(t *testing.T) *altered {
	s := &altered{Store: memory()}
	s.put = func(ctx context.Context, ref event.Object, o bucket.Object, c bucket.Condition) (string, error) {
		if ctx.Err() == nil {
			return s.Store.Put(ctx, ref, o, c)
		}
		time.AfterFunc(time.Second, func() {
			if _, err := s.Store.Put(context.Background(), ref, o, bucket.Condition{}); err != nil {
				t.Error(err)
			}
		})
		return "", fmt.Errorf("%w: %w", bucket.ErrUnclear, context.Cause(ctx))
	}
	return s
}

func withoutETags() *altered {
	s := &altered{Store: memory()}
	s.head = func(ctx context.Context, ref event.Object) (bucket.Info, error) {
		info, err := s.Store.Head(ctx, ref)
		info.ETag = ""
		return info, err
	}
	s.get = func(ctx context.Context, ref event.Object) (bucket.Info, io.ReadCloser, error) {
		info, body, err := s.Store.Get(ctx, ref)
		info.ETag = ""
		return info, body, err
	}
	s.put = func(ctx context.Context, ref event.Object, o bucket.Object, c bucket.Condition) (string, error) {
		_, err := s.Store.Put(ctx, ref, o, c)
		return "", err
	}
	return s
}

// readsWithoutETags has ETags only in responses to writes.
func readsWithoutETags() *altered {
	s := withoutETags()
	s.put = nil
	return s
}

func blind() *altered {
	s := &altered{Store: memory()}
	s.head = func(context.Context, event.Object) (bucket.Info, error) { return bucket.Info{}, bucket.ErrNotFound }
	return s
}

func clairvoyant() *altered {
	s := &altered{Store: memory()}
	s.head = func(ctx context.Context, ref event.Object) (bucket.Info, error) {
		info, err := s.Store.Head(ctx, ref)
		if strings.Contains(ref.Key, "read-after-delete") {
			err = nil
		}
		return info, err
	}
	return s
}

func listingRemoved() *remembering {
	r := newRemembering()
	r.list = func(ctx context.Context, b, prefix, after string) iter.Seq2[bucket.Info, error] {
		return func(yield func(bucket.Info, error) bool) {
			r.mu.Lock()
			defer r.mu.Unlock()
			for key, v := range r.before {
				if prefix != "" && !exists(r.Store, event.Object{Bucket: b, Key: key}) && !yield(v.info, nil) {
					return
				}
			}
			r.Store.List(ctx, b, prefix, after)(yield)
		}
	}
	return r
}
