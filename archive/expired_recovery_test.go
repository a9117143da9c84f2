package archive_test

import (
	"testing"
	"time"

	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/store/memory"
)

// The records expire between the loss of the registers and the recovery.
func TestExpiredBeforeRecovery(t *testing.T) {
	withEnv(t, 1, func(p *env) {
		shard := p.shards()[0]
		p.put(shard, 20)
		stop := p.run(p.archive("ndjson"))
		time.Sleep(time.Minute)
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		before := p.objects()
		p.put(shard, 4)
		last, err := p.stream.Put(p.Context(), shard, "key", []byte("expires"))
		if err != nil {
			t.Fatal(err)
		}
		p.put(shard, 5)
		p.ledger = ledger.NewRows(memory.New())
		p.stream.Trim(shard, last)
		if _, err := p.archive("ndjson").Recover(p.Context()); err != nil {
			t.Fatal(err)
		}
		stop = p.run(p.archive("ndjson"))
		p.put(shard, 10)
		time.Sleep(time.Minute)
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if r := p.expectVerified(p.archive("ndjson"), 20+5+10); r.Gaps != 1 {
			t.Errorf("%+v: want one gap", r)
		}
		after := p.objects()
		for key, was := range before {
			if after[key] != was {
				t.Errorf("%s was %+v, and is %+v", key, was, after[key])
			}
		}
		if len(after) <= len(before) {
			t.Errorf("%d objects became %d", len(before), len(after))
		}
	})
}

func (p *env) objects() map[string]string {
	p.Helper()
	all := map[string]string{}
	for info, err := range p.store.List(p.Context(), "b", "p/20", "") {
		if err != nil {
			p.Fatal(err)
		}
		all[info.Key] = info.ETag
	}
	return all
}
