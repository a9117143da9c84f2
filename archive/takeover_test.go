package archive_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawlhq/pawl/archive"
	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/store/memory"
)

func (p *env) backup() *ledger.Rows {
	p.Helper()
	backup := ledger.NewRows(memory.New())
	for r, err := range p.ledger.ListRegisters(p.Context(), "") {
		if err == nil {
			_, err = backup.WriteRegister(p.Context(), r.Name, "", r.Value)
		}
		if err != nil {
			p.Fatal(err)
		}
	}
	return backup
}

func (p *env) registers(prefix string) (names []string) {
	p.Helper()
	for r, err := range p.ledger.ListRegisters(p.Context(), prefix) {
		if err != nil {
			p.Fatal(err)
		}
		names = append(names, r.Name)
	}
	return names
}

func (p *env) removeRegister(name string) {
	p.Helper()
	r, err := p.ledger.ReadRegister(p.Context(), name)
	if err == nil {
		err = p.ledger.RemoveRegister(p.Context(), name, r.Version)
	}
	if err != nil {
		p.Fatal(err)
	}
}

func (p *env) runFor(a *archive.Archive, d time.Duration) {
	p.Helper()
	stop := p.run(a)
	time.Sleep(d)
	if err := stop(); err != nil {
		p.Fatal(err)
	}
}

// expectRefused runs a worker, which must refuse the first shard and store the second one, and then
// recovers.
func (p *env) expectRefused(records int) {
	p.Helper()
	ids := p.shards()
	p.put(ids[0], 5)
	p.put(ids[1], 5)
	p.log.Reset()
	p.runFor(p.archive("ndjson"), 3*time.Minute)
	log := p.log.String()
	if !strings.Contains(log, "the register of shard "+ids[0]+" does not contain it") || !strings.Contains(log, `pawl archive recover clicks`) {
		p.Errorf("the shard is not refused:\n%s", log)
	}
	if strings.Contains(log, "the register of shard "+ids[1]) || p.progress(ids[1]).Committed != p.records(ids[1])[len(p.records(ids[1]))-1].Number {
		p.Errorf("the other shard waits:\n%s", log)
	}
	if _, err := p.archive("ndjson").Recover(p.Context()); err != nil {
		p.Fatal(err)
	}
	p.runFor(p.archive("ndjson"), time.Minute)
	if r := p.expectVerified(p.archive("ndjson"), records+10); r.Gaps > 0 {
		p.Errorf("%+v: want no gap", r)
	}
}

func TestRestoredLedgerIsRefused(t *testing.T) {
	withEnv(t, 2, func(p *env) {
		a := p.archive("ndjson")
		stop := p.run(a)
		p.put(p.shards()[0], 10)
		p.put(p.shards()[1], 10)
		time.Sleep(30 * time.Second)
		backup := p.backup()
		p.put(p.shards()[0], 10)
		time.Sleep(30 * time.Second)
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		p.ledger = backup
		p.expectRefused(30)
	})
}

func TestLostRegisterIsRefused(t *testing.T) {
	withEnv(t, 2, func(p *env) {
		p.put(p.shards()[0], 10)
		p.put(p.shards()[1], 10)
		p.runFor(p.archive("ndjson"), time.Minute)
		p.removeRegister("archive/clicks/shard/" + p.shards()[0])
		p.expectRefused(20)
	})
}

// A week of virtual time needs few slow reads.
type slowStream struct {
	archive.Stream
	read time.Duration
}

func (s slowStream) Open(ctx context.Context, shard string, from archive.Position) (archive.Reader, error) {
	r, err := s.Stream.Open(ctx, shard, from)
	return slowReader{r, s.read}, err
}

type slowReader struct {
	archive.Reader
	read time.Duration
}

func (r slowReader) Next(ctx context.Context) (archive.Page, error) {
	select {
	case <-time.After(r.read):
	case <-ctx.Done():
	}
	return r.Reader.Next(ctx)
}

// slowArchive returns an archive that sends few requests per day.
func (p *env) slowArchive(read time.Duration) *archive.Archive {
	p.Helper()
	a := p.archive("ndjson")
	a.Stream, a.Lease = slowStream{a.Stream, read}, 12*time.Hour
	return a
}

// pagingStore counts listings and their pages of 1000 keys, except those of Prove.
type pagingStore struct {
	archive.Store
	lists, pages int
}

func (s *pagingStore) List(ctx context.Context, name, prefix, after string) iter.Seq2[bucket.Info, error] {
	if strings.Contains(prefix, "/_pawl/") {
		return s.Store.List(ctx, name, prefix, after)
	}
	return func(yield func(bucket.Info, error) bool) {
		s.lists++
		s.pages++
		n := 0
		for info, err := range s.Store.List(ctx, name, prefix, after) {
			if n++; n > 1000 {
				n = 1
				s.pages++
			}
			if !yield(info, err) {
				return
			}
		}
	}
}

// For a shard that was quiet for a week, the worker lists only the last hour. In that week, two
// busy shards stored 4,032 objects.
func TestTakeoverListsOnce(t *testing.T) {
	withEnv(t, 3, func(p *env) {
		ids := p.shards()
		for _, id := range ids {
			p.put(id, 1)
		}
		slow := p.slowArchive(20 * time.Minute)
		p.runFor(slow, 2*time.Hour)
		for range 8 { // more than a week in total; a running worker needs an event for each virtual second
			time.Sleep(19 * time.Hour)
			p.runFor(slow, 2*time.Hour)
		}
		for _, id := range ids[1:] {
			for i := range 7 * 24 * 12 {
				r := archive.Range{Start: archive.Number(fmt.Sprint(i + 1)), End: archive.Number(fmt.Sprint(i + 2))}
				n := archive.Name{Minute: time.Now().Add(-time.Duration(i) * 5 * time.Minute), Shard: id, Range: r, Format: "ndjson"}
				p.putObject(n.Key("p/"), "busy")
			}
		}
		a := p.archive("ndjson")
		store := &pagingStore{Store: a.Store}
		a.Store = store
		p.runFor(a, time.Minute)
		t.Logf("the takeover took %d listings of %d pages", store.lists, store.pages)
		if store.lists != 1 || store.pages > 1 {
			t.Errorf("%d listings of %d pages: want one of one page", store.lists, store.pages)
		}
		for _, id := range ids {
			if p.progress(id).State != archive.Reading {
				t.Errorf("%s: %+v", id, p.progress(id))
			}
		}
	})
}

type partialStream struct {
	archive.Stream
	gone map[string]bool
}

func (s partialStream) Shards(ctx context.Context) ([]archive.Shard, error) {
	all, err := s.Stream.Shards(ctx)
	return slices.DeleteFunc(all, func(one archive.Shard) bool { return s.gone[one.ID] }), err
}

func (s partialStream) Open(ctx context.Context, shard string, from archive.Position) (archive.Reader, error) {
	if s.gone[shard] {
		return nil, fmt.Errorf("shard %s: %w", shard, archive.ErrNoStream)
	}
	return s.Stream.Open(ctx, shard, from)
}

// The shard was created and closed while no worker ran for longer than the retention.
func TestUnseenShardIsAGap(t *testing.T) {
	withEnv(t, 1, func(p *env) {
		first := p.shards()[0]
		p.put(first, 3)
		p.runFor(p.archive("ndjson"), time.Minute)
		split := func(id string) []string {
			if err := p.stream.Split(p.Context(), id); err != nil {
				t.Fatal(err)
			}
			ids := p.shards()
			return ids[len(ids)-2:]
		}
		children := split(first)
		p.put(children[0], 5) // these records are lost
		p.put(children[1], 5)
		grandchildren := split(children[0])
		p.put(grandchildren[0], 4)
		time.Sleep(30 * time.Hour)
		p.put(grandchildren[1], 2)
		a := p.archive("ndjson")
		a.Stream = partialStream{a.Stream, map[string]bool{first: true, children[0]: true}}
		p.runFor(a, 3*time.Minute)
		gaps := map[string]bool{}
		for info, err := range p.store.List(p.Context(), "b", "p/20", "") {
			if err != nil {
				t.Fatal(err)
			}
			if n, err := archive.ParseKey("p/", info.Key); err == nil && n.Format == archive.GapFormat {
				gaps[n.Shard] = true
			}
		}
		if !gaps[children[0]] {
			t.Errorf("there are gaps of %v, and none of %s\n%s", gaps, children[0], p.log.String())
		}
		p.expectVerified(p.archive("ndjson"), 3+5+4+2)
	})
}

func TestFinishedRegistersAreRemoved(t *testing.T) {
	withEnv(t, 1, func(p *env) {
		first := p.shards()[0]
		p.put(first, 3)
		p.runFor(p.archive("ndjson"), time.Minute)
		if err := p.stream.Split(p.Context(), first); err != nil {
			t.Fatal(err)
		}
		children := p.shards()[1:]
		p.runFor(p.archive("ndjson"), 2*time.Minute)
		has := func(kind, id string) bool { return len(p.registers("archive/clicks/"+kind+"/"+id)) > 0 }
		if !has("shard", first) || p.progress(first).State != archive.Finished {
			t.Fatalf("%+v: want a register of a finished shard that is listed", p.progress(first))
		}
		gone := p.archive("ndjson")
		gone.Stream = partialStream{gone.Stream, map[string]bool{first: true}}
		child, err := p.ledger.ReadRegister(p.Context(), "archive/clicks/shard/"+children[0])
		if err != nil {
			t.Fatal(err)
		}
		p.removeRegister(child.Name)
		c, err := gone.ExistingClaim(p.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := gone.Shards(p.Context(), c); err != nil {
			t.Fatal(err)
		}
		if !has("shard", first) {
			t.Error("the register of a shard was removed before its child has an owner")
		}
		p.runFor(gone, 2*time.Minute)
		if has("shard", first) || has("lease", first) {
			t.Errorf("a finished shard that is no longer listed has the registers %q", p.registers("archive/clicks/"))
		}
		p.put(children[0], 2)
		p.runFor(gone, 2*time.Minute)
		p.expectVerified(gone, 5)
	})
}

func TestRegistersOfDeadWorkersAreRemoved(t *testing.T) {
	withEnv(t, 1, func(p *env) {
		for range 3 {
			p.runFor(p.archive("ndjson"), time.Minute)
		}
		stop := p.run(p.archive("ndjson"))
		time.Sleep(time.Minute)
		if n := len(p.registers("archive/clicks/worker/")); n != 4 {
			t.Errorf("%d workers have registers: want 4", n)
		}
		time.Sleep(11 * time.Minute)
		alive := p.registers("archive/clicks/worker/")
		if len(alive) != 1 {
			t.Fatalf("%q: want one living worker", alive)
		}
		p.removeRegister(alive[0])
		time.Sleep(time.Minute)
		if again := p.registers("archive/clicks/worker/"); !slices.Equal(again, alive) {
			t.Errorf("%q: want %q again", again, alive)
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	})
}

type slowHeads struct {
	archive.Store
	heads *atomic.Int64
}

func (s slowHeads) Head(ctx context.Context, ref event.Object) (bucket.Info, error) {
	if strings.HasPrefix(ref.Key, "p/20") {
		time.Sleep(time.Second)
		s.heads.Add(1)
	}
	return s.Store.Head(ctx, ref)
}

func TestRecoveryChecksInParallel(t *testing.T) {
	withEnv(t, 1, func(p *env) {
		shard := p.shards()[0]
		stop := p.run(p.slowArchive(30 * time.Second))
		for i := range 2 * 64 {
			if i == 64 {
				time.Sleep(30 * time.Hour)
			}
			p.put(shard, 1)
			time.Sleep(time.Minute)
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		p.stream.Trim(shard, p.records(shard)[63].Number)
		a := p.archive("ndjson")
		if _, err := a.Recover(p.Context()); err != nil {
			t.Fatal(err)
		}
		var heads atomic.Int64
		began := time.Now()
		a.Store = slowHeads{a.Store, &heads}
		stop = p.run(a)
		for p.progress(shard).State != archive.Reading && time.Since(began) < time.Hour {
			time.Sleep(100 * time.Millisecond)
		}
		if took := time.Since(began); took > 15*time.Second || heads.Load() != 64 {
			t.Errorf("the recovery took %v with %d HEAD requests of one second each: want 64, 16 at a time", took, heads.Load())
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		p.expectVerified(p.archive("ndjson"), 128)
	})
}

type forgetfulStore struct{ archive.Store }

func (forgetfulStore) List(context.Context, string, string, string) iter.Seq2[bucket.Info, error] {
	return func(func(bucket.Info, error) bool) {}
}

func TestInconsistentListingsAreRefused(t *testing.T) {
	withEnv(t, 1, func(p *env) {
		a := p.archive("ndjson")
		if err := a.Prove(p.Context()); err != nil {
			t.Error(err)
		}
		a.Store = forgetfulStore{a.Store}
		if err := a.Prove(p.Context()); err == nil || !strings.Contains(err.Error(), "a listing does not show an object that was just written") {
			t.Errorf("%v: want a refusal", err)
		}
		for info, err := range p.store.List(p.Context(), "b", "", "") {
			t.Errorf("%s is left, %v", info.Key, err)
		}
	})
}

type noExpiryStore struct{ archive.Store }

func (s noExpiryStore) PutSigned(ctx context.Context, ref event.Object, o bucket.Object, c bucket.Condition, _ time.Time, _ time.Duration) (string, error) {
	return s.Put(ctx, ref, o, c)
}

func TestExpiredSignaturesAreRefused(t *testing.T) {
	withEnv(t, 1, func(p *env) {
		a := p.archive("ndjson")
		a.Store = noExpiryStore{a.Store}
		stop := p.run(a)
		time.Sleep(time.Minute)
		if err := stop(); !errors.Is(err, bucket.ErrIgnored) || !strings.Contains(err.Error(), "after its signature expired") {
			t.Errorf("%v: want a refusal", err)
		}
		for info, err := range p.store.List(p.Context(), "b", "", "") {
			t.Errorf("%s is left, %v", info.Key, err)
		}
	})
}
