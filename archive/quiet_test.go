package archive_test

import (
	"context"
	"testing"
	"time"

	"github.com/pawlhq/pawl/archive"
)

func (p *env) progress(shard string) archive.Progress {
	p.Helper()
	a := p.archive("ndjson")
	c, err := a.ExistingClaim(p.Context())
	if err != nil {
		p.Fatal(err)
	}
	found, _, err := a.Progress(p.Context(), c, shard)
	if err != nil {
		p.Fatal(err)
	}
	return found
}

// A worker that takes over a quiet shard after its last record expired needs no gap.
func TestQuietShardIsRecordedHourly(t *testing.T) {
	withEnv(t, 1, func(p *env) {
		shard := p.shards()[0]
		stop := p.run(p.slowArchive(5 * time.Second))
		p.put(shard, 3)
		time.Sleep(30 * time.Hour)
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		got := p.progress(shard)
		if age := time.Since(got.SeenEmpty); age > 70*time.Minute || age < 5*time.Minute || got.Intent != nil {
			t.Errorf("the shard was seen empty %v ago: %+v", age, got)
		}
		last := p.records(shard)[2].Number
		p.put(shard, 2)
		p.stream.Trim(shard, last)
		stop = p.run(p.archive("ndjson"))
		time.Sleep(time.Minute)
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if r := p.expectVerified(p.archive("ndjson"), 5); r.Gaps != 0 {
			t.Errorf("%+v: want no gap, because nothing was lost", r)
		}
	})
}

func TestClockAheadHidesNoExpiry(t *testing.T) {
	withEnv(t, 1, func(p *env) {
		a := p.slowArchive(5 * time.Second)
		a.Now = func() time.Time { return time.Now().Add(5 * time.Hour) }
		stop := p.run(a)
		p.put(p.shards()[0], 3)
		time.Sleep(3 * time.Hour)
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		got := p.progress(p.shards()[0])
		if age := time.Since(got.SeenEmpty); got.SeenEmpty.IsZero() || age < 5*time.Minute {
			t.Errorf("the shard was seen empty %v ago: %+v", age, got)
		}
	})
}

type openingStream struct {
	archive.Stream
	opened *int
}

func (s openingStream) Open(ctx context.Context, shard string, from archive.Position) (archive.Reader, error) {
	*s.opened++
	return s.Stream.Open(ctx, shard, from)
}

// The last record is about to expire.
func TestQuietShardKeepsItsReader(t *testing.T) {
	withEnv(t, 1, func(p *env) {
		stop := p.run(p.slowArchive(5 * time.Second))
		p.put(p.shards()[0], 1)
		time.Sleep(22 * time.Hour) // the retention is 24 hours
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		opened := 0
		a := p.archive("ndjson")
		a.Stream = openingStream{a.Stream, &opened}
		stop = p.run(a)
		time.Sleep(time.Hour)
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if opened > 5 {
			t.Errorf("the shard was opened %d times in an hour", opened)
		}
		p.expectVerified(p.archive("ndjson"), 1)
	})
}
