package archive_test

import (
	"context"
	"fmt"
	"io"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl/archive"
	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/event"
)

type brokenObjectStore struct {
	archive.Store
	key  string
	list bool
}

func (s brokenObjectStore) Head(ctx context.Context, ref event.Object) (bucket.Info, error) {
	if ref.Key == s.key {
		return bucket.Info{}, fmt.Errorf("HEAD %s: %w", ref.Key, bucket.ErrUnavailable)
	}
	return s.Store.Head(ctx, ref)
}

func (s brokenObjectStore) List(ctx context.Context, name, prefix, after string) iter.Seq2[bucket.Info, error] {
	return func(yield func(bucket.Info, error) bool) {
		for info, err := range s.Store.List(ctx, name, prefix, after) {
			if info.Key == s.key && !s.list {
				info, err = bucket.Info{Key: info.Key}, fmt.Errorf("%w: %s", bucket.ErrUnlistable, info.Key)
			}
			if !yield(info, err) {
				return
			}
		}
	}
}

// If a takeover finds a broken object, it stops only the shard in the object's key, because that
// shard's register does not contain the object.
func TestBrokenObjectStopsItsShardOnly(t *testing.T) {
	for name, list := range map[string]bool{"HEAD fails": true, "unlistable": false} {
		t.Run(name, func(t *testing.T) {
			withEnv(t, 2, func(p *env) {
				ids := p.shards()
				p.put(ids[0], 2)
				p.put(ids[1], 2)
				p.runFor(p.archive("ndjson"), time.Minute)
				before := p.progress(ids[0]).Committed
				r := archive.Range{Start: "9" + before, End: "91" + before}
				key := archive.Name{Minute: time.Now(), Shard: ids[0], Range: r, Format: "ndjson"}.Key("p/")
				p.putObject(key, "x")
				p.put(ids[0], 2)
				p.put(ids[1], 2)
				a := p.archive("ndjson")
				a.Store = brokenObjectStore{p.store, key, list}
				p.log.Reset()
				p.runFor(a, 3*time.Minute)
				if all := p.records(ids[1]); p.progress(ids[1]).Committed != all[len(all)-1].Number {
					t.Errorf("%s waits:\n%s", ids[1], p.log.String())
				}
				if p.progress(ids[0]).Committed != before || !strings.Contains(p.log.String(), key) {
					t.Errorf("%s was stored, or its log does not name %s:\n%s", ids[0], key, p.log.String())
				}
				if s := a.Status(); s.Open != 2 || s.Stopped != 1 || s.Err != nil {
					t.Errorf("%+v: want 2 open shards, of which 1 is stopped", s)
				}
				a.Store = brokenObjectStore{p.store, strings.Replace(key, ids[0], "shardId-of-another-stream", 1), false}
				p.putObject(a.Store.(brokenObjectStore).key, "x")
				p.remove(key)
				p.runFor(a, 3*time.Minute)
				if all := p.records(ids[0]); p.progress(ids[0]).Committed != all[len(all)-1].Number {
					t.Errorf("an object of no shard stops %s:\n%s", ids[0], p.log.String())
				}
				if s := a.Status(); s.Held != 2 || s.Stopped != 0 {
					t.Errorf("%+v: want 2 shards, of which none is stopped", s)
				}
			})
		})
	}
}

func TestVerifyUnlistable(t *testing.T) {
	withEnv(t, 1, func(p *env) {
		p.put(p.shards()[0], 2)
		p.runWorker(p.archive("ndjson"))
		for _, key := range []string{"p/0 strange", "p/_pawl/malformed/x-1.json"} {
			p.putObject(key, "x")
			a := p.archive("ndjson")
			a.Store = brokenObjectStore{p.store, key, false}
			if r := p.expectFinding(a, archive.VerifyOptions{}, archive.Unreadable, key); r.Objects != 1 {
				t.Errorf("%+v: want 1 object", r)
			}
			p.remove(key)
		}
	})
}

// unreachableStore fails like a bucket whose requests, or all but those for the claim, are not answered.
type unreachableStore struct {
	*failingStore
	claimReadable bool
}

func (s unreachableStore) reach(ref event.Object) error {
	if s.claimReadable && ref.Key == archive.ClaimKey("p/") {
		return nil
	}
	return s.err()
}

func (s unreachableStore) Head(ctx context.Context, ref event.Object) (bucket.Info, error) {
	if err := s.reach(ref); err != nil {
		return bucket.Info{}, err
	}
	return s.failingStore.Head(ctx, ref)
}

func (s unreachableStore) Get(ctx context.Context, ref event.Object) (bucket.Info, io.ReadCloser, error) {
	if err := s.reach(ref); err != nil {
		return bucket.Info{}, nil, err
	}
	return s.failingStore.Get(ctx, ref)
}

func (s unreachableStore) List(ctx context.Context, name, prefix, after string) iter.Seq2[bucket.Info, error] {
	if err := s.err(); err != nil {
		return func(yield func(bucket.Info, error) bool) { yield(bucket.Info{}, err) }
	}
	return s.failingStore.List(ctx, name, prefix, after)
}

// An alert waits for 15 minutes in which the number is never 0.
func TestFailingBucketCountsAsStopped(t *testing.T) {
	for name, c := range map[string]struct {
		err   error
		store func(*failingStore) archive.Store
	}{
		"uploads denied":          {bucket.ErrDenied, func(s *failingStore) archive.Store { return s }},
		"uploads unanswered":      {bucket.ErrUnclear, func(s *failingStore) archive.Store { return s }},
		"only the claim readable": {bucket.ErrUnavailable, func(s *failingStore) archive.Store { return unreachableStore{s, true} }},
		"unreachable":             {bucket.ErrUnavailable, func(s *failingStore) archive.Store { return unreachableStore{s, false} }},
	} {
		t.Run(name, func(t *testing.T) {
			withEnv(t, 1, func(p *env) {
				store, a := &failingStore{Store: p.store}, p.archive("ndjson")
				a.Store = c.store(store)
				stop := p.run(a)
				time.Sleep(time.Minute)
				store.set(c.err)
				p.put(p.shards()[0], 2)
				time.Sleep(6 * time.Minute)
				for range 240 {
					if s := a.Status(); s.Stopped != 1 {
						p.Fatalf("%s: %d stopped shards, want 1\n%s", time.Now().Format("15:04:05"), s.Stopped, p.log.String())
					}
					time.Sleep(5 * time.Second)
				}
				store.set(nil)
				time.Sleep(15 * time.Minute)
				if s := a.Status(); s.Stopped != 0 {
					p.Errorf("%d stopped shards after the failure, want none\n%s", s.Stopped, p.log.String())
				}
				if err := stop(); err != nil {
					p.Error(err)
				}
				p.expectVerified(p.archive("ndjson"), 2)
			})
		})
	}
}
