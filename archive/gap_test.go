package archive_test

import (
	"testing"
	"time"

	"github.com/pawlhq/pawl/archive"
	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/store/memory"
)

func (p *env) expectGaps(all, expired, possibly int) {
	p.Helper()
	r := p.report(p.archive("ndjson"), archive.VerifyOptions{})
	notes := 0
	for _, n := range r.Notes {
		if n.Kind == archive.Expired {
			notes++
		}
	}
	if len(r.Findings) > 0 || r.Gaps != all || r.Expired != expired || r.PossiblyExpired != possibly || notes != expired {
		p.Errorf("%+v: want %d gaps, of which %d are of expired records, and %d of records that may have expired", r, all, expired, possibly)
	}
}

func TestGapOfExpiredRecords(t *testing.T) {
	withEnv(t, 1, func(p *env) {
		p.makeVoid("ndjson")
		p.expectGaps(1, 1, 0)
	})
}

func TestGapOfPossiblyExpiredRecords(t *testing.T) {
	withEnv(t, 1, func(p *env) {
		shard := p.shards()[0]
		p.put(shard, 3)
		p.runWorker(p.archive("ndjson"))
		time.Sleep(30 * time.Hour)
		p.put(shard, 1)
		p.stream.Trim(shard, p.records(shard)[3].Number)
		p.put(shard, 2)
		p.runWorker(p.archive("ndjson"))
		p.expectGaps(1, 0, 1)
	})
}

func TestGapOfMalformedRecords(t *testing.T) {
	withEnv(t, 1, func(p *env) {
		shard := p.shards()[0]
		for range 40 {
			if _, err := p.stream.Put(p.Context(), shard, "\xff", []byte("odd")); err != nil {
				t.Fatal(err)
			}
		}
		p.runWorker(p.archive("ndjson"))
		p.expectGaps(1, 0, 0) // 32 of 40 records: the other 8 wait for a valid record or the end of the shard
		p.put(shard, 1)
		p.runWorker(p.archive("ndjson"))
		p.expectVerified(p.archive("ndjson"), 1)
	})
}

func TestGapBehindRecoveredGap(t *testing.T) {
	withEnv(t, 1, func(p *env) {
		shard := p.shards()[0]
		for range 32 { // the gap ends with a record
			if _, err := p.stream.Put(p.Context(), shard, "\xff", []byte("odd")); err != nil {
				t.Fatal(err)
			}
		}
		p.runWorker(p.archive("ndjson"))
		p.expectGaps(1, 0, 0)
		p.put(shard, 1)
		p.stream.Trim(shard, p.records(shard)[32].Number)
		p.ledger = ledger.NewRows(memory.New())
		if _, err := p.archive("ndjson").Recover(p.Context()); err != nil {
			t.Fatal(err)
		}
		p.put(shard, 2)
		p.runWorker(p.archive("ndjson"))
		p.expectGaps(2, 0, 1)
	})
}
