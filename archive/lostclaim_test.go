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

// works lets a worker run for two minutes.
func (p *place) works(a *archive.Archive) {
	p.Helper()
	stop := p.run(a)
	time.Sleep(2 * time.Minute)
	if err := stop(); err != nil {
		p.Fatal(err)
	}
}

// refuses fails unless a worker ends with ErrLostClaim and stores nothing.
func (p *place) refuses(a *archive.Archive) {
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

// claimText returns the content of the claim file.
func (p *place) claimText() string {
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

// TestEmptiedBucket: a worker refuses a bucket without a claim file if the ledger has
// registers of the archive. A recovery stores what the stream still has, and gaps cover
// the rest.
func TestEmptiedBucket(t *testing.T) {
	inPlace(t, 1, func(p *place) {
		shard := p.shards()[0]
		p.put(shard, 10)
		p.works(p.archive("ndjson"))
		right := p.store
		p.store = membucket.New(time.Now, []string{"b"}) // another store with this bucket
		p.refuses(p.archive("ndjson"))
		p.store = right
		p.put(shard, 5)
		p.works(p.archive("ndjson"))
		p.verified(p.archive("ndjson"), 15)

		p.store = membucket.New(time.Now, []string{"b"})
		p.stream.Trim(shard, p.entries(shard)[3].Number)
		p.refuses(p.archive("ndjson"))
		if c, err := p.archive("ndjson").Recover(p.Context()); err != nil || c.Generation != 2 {
			t.Fatalf("%+v, %v: want generation 2", c, err)
		}
		p.works(p.archive("ndjson"))
		if r := p.verified(p.archive("ndjson"), 11); r.Gaps != 1 {
			t.Errorf("%+v: want a gap for the 4 records that have expired", r)
		}
	})
}

// TestMarkerAlone: a start that was killed before it made the claim file is no loss.
func TestMarkerAlone(t *testing.T) {
	inPlace(t, 1, func(p *place) {
		p.put(p.shards()[0], 10)
		ctx, crash := context.WithCancel(p.Context())
		a := p.archive("ndjson")
		a.Store = &beforePut{Store: p.store, do: crash}
		if _, err := a.Claim(ctx); err == nil || len(p.keys("p/_pawl/archive")) > 0 {
			t.Fatalf("the claim was made: %v", err)
		}
		p.works(p.archive("ndjson"))
		p.verified(p.archive("ndjson"), 10)
	})
}

// beforePut calls do and stores nothing.
type beforePut struct {
	archive.Store
	do func()
}

// Put implements [bucket.Store].
func (s *beforePut) Put(context.Context, event.Object, bucket.Object, bucket.Condition) (string, error) {
	s.do()
	return "", bucket.ErrUnclear
}

func (p *place) keys(prefix string) (keys []string) {
	p.Helper()
	for info, err := range p.store.List(p.Context(), "b", prefix, "") {
		if err != nil {
			p.Fatal(err)
		}
		keys = append(keys, info.Key)
	}
	return keys
}

// TestClaimOfAnotherStore: two starts, each with another store behind the bucket's name,
// may both have made a claim file. The ledger's marker names one of them.
func TestClaimOfAnotherStore(t *testing.T) {
	inPlace(t, 1, func(p *place) {
		a := p.archive("ndjson")
		c, err := a.Claim(p.Context())
		if err != nil {
			t.Fatal(err)
		}
		text := p.claimText()
		other := strings.Replace(text, c.Nonce, "another-nonce", 1)
		p.store = membucket.New(time.Now, []string{"b"})
		p.refuses(p.archive("ndjson"))
		p.object(archive.ClaimKey("p/"), other)
		p.refuses(p.archive("ndjson"))

		p.store = membucket.New(time.Now, []string{"b"}) // a copy of the first
		p.object(archive.ClaimKey("p/"), text)
		ended := make(chan error, 1)
		go func() { ended <- run(p.Context(), p.archive("ndjson")) }()
		p.put(p.shards()[0], 10)
		time.Sleep(time.Minute)
		p.verified(p.archive("ndjson"), 10)
		p.object(archive.ClaimKey("p/"), other)
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

// beforeList calls do before the first listing of a prefix.
type beforeList struct {
	archive.Store
	prefix string
	do     func()
}

// List implements [bucket.Store].
func (s *beforeList) List(ctx context.Context, name, prefix, startAfter string) iter.Seq2[bucket.Info, error] {
	if do := s.do; do != nil && prefix == s.prefix {
		s.do = nil
		do()
	}
	return s.Store.List(ctx, name, prefix, startAfter)
}

// TestClaimedMeanwhile: a worker that begins at the same time as another one finds the
// registers and objects of that one, and its claim file.
func TestClaimedMeanwhile(t *testing.T) {
	inPlace(t, 1, func(p *place) {
		p.put(p.shards()[0], 10)
		a := p.archive("ndjson")
		a.Store = &beforeList{Store: p.store, prefix: a.Prefix, do: func() { p.works(p.archive("ndjson")) }}
		stop := p.run(a)
		time.Sleep(3 * time.Minute)
		p.put(p.shards()[0], 5)
		time.Sleep(time.Minute)
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		p.verified(p.archive("ndjson"), 15)
	})
}
