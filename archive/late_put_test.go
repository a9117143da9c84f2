package archive_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl/archive"
	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/store/memory"
)

type slowStore struct {
	archive.Store
	held func() error
}

func (s *slowStore) PutSigned(ctx context.Context, ref event.Object, o bucket.Object, c bucket.Condition, signed time.Time, valid time.Duration) (string, error) {
	if isProbe(ref) {
		return s.Store.PutSigned(ctx, ref, o, c, signed, valid)
	}
	body, err := io.ReadAll(o.Body)
	if err != nil {
		return "", err
	}
	send := func() error {
		o.Body = bytes.NewReader(body)
		_, err := s.Store.PutSigned(context.WithoutCancel(ctx), ref, o, c, signed, valid)
		return err
	}
	if s.held == nil {
		s.held = send
		<-ctx.Done() // until the worker stops
		return "", bucket.ErrUnclear
	}
	return "", send()
}

// Prove writes its own objects.
func isProbe(ref event.Object) bool { return strings.Contains(ref.Key, "/.pawl-doctor/") }

func TestLatePut(t *testing.T) {
	withEnv(t, 1, func(p *env) {
		shard := p.shards()[0]
		p.put(shard, 3)
		slow := &slowStore{Store: p.store}
		a := p.archive("ndjson")
		a.Store = slow
		stop := p.run(a)
		time.Sleep(20 * time.Second)
		if err := stop(); err != nil || slow.held == nil {
			t.Fatalf("nothing was sent: %v", err)
		}
		number, err := p.stream.Put(p.Context(), shard, "key", []byte("the last one that expires"))
		if err != nil {
			t.Fatal(err)
		}
		p.stream.Trim(shard, number)
		p.put(shard, 5)
		stop = p.run(p.archive("ndjson"))
		time.Sleep(time.Minute)
		if err := slow.held(); !errors.Is(err, bucket.ErrPrecondition) {
			t.Errorf("the late PUT: %v", err)
		}
		time.Sleep(time.Minute)
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if r := p.expectVerified(p.archive("ndjson"), 5); r.Gaps != 1 || r.Voids != 1 {
			t.Errorf("%+v", r)
		}
	})
}

func TestPartExpired(t *testing.T) {
	withEnv(t, 1, func(p *env) {
		shard := p.shards()[0]
		p.put(shard, 3)
		slow := &slowStore{Store: p.store}
		a := p.archive("ndjson")
		a.Store = slow
		stop := p.run(a)
		time.Sleep(20 * time.Second)
		if err := stop(); err != nil || slow.held == nil {
			t.Fatalf("nothing was sent: %v", err)
		}
		p.stream.Trim(shard, p.records(shard)[0].Number)
		p.put(shard, 2)
		stop = p.run(p.archive("ndjson"))
		time.Sleep(2 * time.Minute)
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if r := p.expectVerified(p.archive("ndjson"), 2+2); r.Gaps != 1 || r.Voids != 1 {
			t.Errorf("%+v", r)
		}
	})
}

func TestLatePutAfterRecovery(t *testing.T) {
	withEnv(t, 1, func(p *env) {
		shard := p.shards()[0]
		p.put(shard, 3)
		slow := &slowStore{Store: p.store}
		a := p.archive("ndjson")
		a.Store = slow
		stop := p.run(a)
		time.Sleep(20 * time.Second)
		if err := stop(); err != nil || slow.held == nil {
			t.Fatalf("nothing was sent: %v", err)
		}
		p.ledger = ledger.NewRows(memory.New())
		if _, err := p.archive("ndjson").Recover(p.Context()); err != nil {
			t.Fatal(err)
		}
		p.put(shard, 2)
		stop = p.run(p.archive("ndjson"))
		time.Sleep(time.Minute)
		if err := slow.held(); !errors.Is(err, bucket.ErrExpired) {
			t.Errorf("the late PUT: %v", err)
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		p.expectVerified(p.archive("ndjson"), 5)
	})
}

// An operator deletes the first of two stored objects of an intent, and its records have expired.
// The gap must end where the second object begins.
func TestRemovedFromIntent(t *testing.T) {
	withEnv(t, 1, func(p *env) {
		shard := p.shards()[0]
		for range 3 {
			p.put(shard, 3)
			time.Sleep(time.Minute)
		}
		a := p.archive("ndjson")
		ctx, cancel := context.WithCancel(p.Context())
		stored := &countingStore{Store: p.store, second: cancel}
		a.Store = stored
		if err := run(ctx, a); err != nil || len(stored.keys) != 2 {
			t.Fatalf("%q were stored: %v", stored.keys, err)
		}
		if err := p.store.Delete(p.Context(), event.Object{Bucket: "b", Key: stored.keys[0]}, bucket.Condition{}); err != nil {
			t.Fatal(err)
		}
		p.stream.Trim(shard, p.records(shard)[4].Number)
		p.put(shard, 3)
		stop := p.run(p.archive("ndjson"))
		time.Sleep(2 * time.Minute)
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if r := p.expectVerified(p.archive("ndjson"), 3+3+3); r.Gaps != 1 || r.Voids != 1 {
			t.Errorf("%+v", r)
		}
	})
}

// countingStore loses the response to the second upload, and stops the process.
type countingStore struct {
	archive.Store
	second func()
	keys   []string
	dead   bool
}

func (s *countingStore) PutSigned(ctx context.Context, ref event.Object, o bucket.Object, c bucket.Condition, signed time.Time, valid time.Duration) (string, error) {
	etag, err := s.Store.PutSigned(ctx, ref, o, c, signed, valid)
	if isProbe(ref) {
		return etag, err
	}
	if s.keys = append(s.keys, ref.Key); len(s.keys) < 2 {
		return etag, err
	}
	s.dead = true
	s.second()
	return "", bucket.ErrUnclear
}

func (s *countingStore) Head(ctx context.Context, ref event.Object) (bucket.Info, error) {
	if s.dead {
		return bucket.Info{}, bucket.ErrDenied
	}
	return s.Store.Head(ctx, ref)
}

type hookedStream struct {
	archive.Stream
	meanwhile func()
}

func (s *hookedStream) Shards(ctx context.Context) ([]archive.Shard, error) {
	all, err := s.Stream.Shards(ctx)
	s.meanwhile()
	return all, err
}

func TestShardCreatedDuringListing(t *testing.T) {
	withEnv(t, 1, func(p *env) {
		work := func() {
			t.Helper()
			stop := p.run(p.archive("ndjson"))
			p.put(p.shards()[len(p.shards())-1], 3)
			time.Sleep(time.Minute)
			if err := stop(); err != nil {
				t.Fatal(err)
			}
		}
		work()
		a := p.archive("ndjson")
		c, err := a.ExistingClaim(p.Context())
		if err != nil {
			t.Fatal(err)
		}
		a.Stream = &hookedStream{a.Stream, func() {
			if err := p.stream.Split(p.Context(), p.shards()[0]); err != nil {
				t.Error(err)
			}
			work()
		}}
		if all, err := a.Shards(p.Context(), c); err != nil || len(all) != 1 {
			t.Errorf("%+v, %v: want the one shard that existed before", all, err)
		}
	})
}
