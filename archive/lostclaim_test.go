package archive_test

import (
	"context"
	"errors"
	"io"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl/archive"
	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/bucket/membucket"
	"github.com/pawlhq/pawl/event"
)

func (p *env) runWorker(a *archive.Archive) {
	p.Helper()
	stop := p.run(a)
	time.Sleep(2 * time.Minute)
	if err := stop(); err != nil {
		p.Fatal(err)
	}
}

func (p *env) expectLostClaim(a *archive.Archive) {
	p.Helper()
	ctx, stop := context.WithTimeout(p.Context(), time.Minute)
	defer stop()
	before := len(p.keys("p/"))
	if err := run(ctx, a); !errors.Is(err, archive.ErrLostClaim) {
		p.Errorf("%v: want ErrLostClaim", err)
	}
	if n := len(p.keys("p/")); n != before {
		p.Errorf("%d objects were stored", n-before)
	}
}

func (p *env) claimText() string {
	p.Helper()
	_, r, err := p.store.Get(p.Context(), event.Object{Bucket: "b", Key: archive.ClaimKey("p/")})
	if err != nil {
		p.Fatal(err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		p.Fatal(err)
	}
	return string(text)
}

func TestEmptiedBucket(t *testing.T) {
	withEnv(t, 1, func(p *env) {
		shard := p.shards()[0]
		p.put(shard, 10)
		p.runWorker(p.archive("ndjson"))
		right := p.store
		p.store = membucket.New(time.Now, []string{"b"}) // another store with a bucket of this name
		p.expectLostClaim(p.archive("ndjson"))
		p.store = right
		p.put(shard, 5)
		p.runWorker(p.archive("ndjson"))
		p.expectVerified(p.archive("ndjson"), 15)

		p.store = membucket.New(time.Now, []string{"b"})
		p.stream.Trim(shard, p.records(shard)[3].Number)
		p.expectLostClaim(p.archive("ndjson"))
		if c, err := p.archive("ndjson").Recover(p.Context()); err != nil || c.Generation != 2 {
			t.Fatalf("%+v, %v: want generation 2", c, err)
		}
		p.runWorker(p.archive("ndjson"))
		if r := p.expectVerified(p.archive("ndjson"), 11); r.Gaps != 1 {
			t.Errorf("%+v: want a gap for the 4 records that have expired", r)
		}
	})
}

func TestMarkerWithoutClaimFile(t *testing.T) {
	withEnv(t, 1, func(p *env) {
		p.put(p.shards()[0], 10)
		ctx, crash := context.WithCancel(p.Context())
		a := p.archive("ndjson")
		a.Store = &beforePut{Store: p.store, do: crash}
		if _, err := a.Claim(ctx); err == nil || len(p.keys("p/_pawl/archive")) > 0 {
			t.Fatalf("the claim was made: %v", err)
		}
		p.runWorker(p.archive("ndjson"))
		p.expectVerified(p.archive("ndjson"), 10)
	})
}

type beforePut struct {
	archive.Store
	do func()
}

func (s *beforePut) Put(context.Context, event.Object, bucket.Object, bucket.Condition) (string, error) {
	s.do()
	return "", bucket.ErrUnclear
}

func (p *env) keys(prefix string) (keys []string) {
	p.Helper()
	for info, err := range p.store.List(p.Context(), "b", prefix, "") {
		if err != nil {
			p.Fatal(err)
		}
		keys = append(keys, info.Key)
	}
	return keys
}

// Two workers start with different stores behind the bucket's name. Both may create a claim file,
// but the marker accepts only one.
func TestClaimOfAnotherStore(t *testing.T) {
	withEnv(t, 1, func(p *env) {
		a := p.archive("ndjson")
		c, err := a.Claim(p.Context())
		if err != nil {
			t.Fatal(err)
		}
		text := p.claimText()
		other := strings.Replace(text, c.Nonce, "another-nonce", 1)
		p.store = membucket.New(time.Now, []string{"b"})
		p.expectLostClaim(p.archive("ndjson"))
		p.putObject(archive.ClaimKey("p/"), other)
		p.expectLostClaim(p.archive("ndjson"))

		p.store = membucket.New(time.Now, []string{"b"}) // a copy of the first store
		p.putObject(archive.ClaimKey("p/"), text)
		ended := make(chan error, 1)
		go func() { ended <- run(p.Context(), p.archive("ndjson")) }()
		p.put(p.shards()[0], 10)
		time.Sleep(time.Minute)
		p.expectVerified(p.archive("ndjson"), 10)
		p.putObject(archive.ClaimKey("p/"), other)
		select {
		case err := <-ended:
			if !errors.Is(err, archive.ErrLostClaim) {
				t.Errorf("%v: want ErrLostClaim", err)
			}
		case <-time.After(time.Minute):
			t.Error("the worker has not ended")
		}
	})
}

type beforeList struct {
	archive.Store
	prefix string
	do     func()
}

func (s *beforeList) List(ctx context.Context, name, prefix, startAfter string) iter.Seq2[bucket.Info, error] {
	if do := s.do; do != nil && prefix == s.prefix {
		s.do = nil
		do()
	}
	return s.Store.List(ctx, name, prefix, startAfter)
}

func TestClaimRaceAtStart(t *testing.T) {
	withEnv(t, 1, func(p *env) {
		p.put(p.shards()[0], 10)
		a := p.archive("ndjson")
		a.Store = &beforeList{Store: p.store, prefix: a.Prefix, do: func() { p.runWorker(p.archive("ndjson")) }}
		stop := p.run(a)
		time.Sleep(3 * time.Minute)
		p.put(p.shards()[0], 5)
		time.Sleep(time.Minute)
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		p.expectVerified(p.archive("ndjson"), 15)
	})
}
