package archive_test

import (
	"context"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl/archive"
	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/store/memory"
)

func (p *env) report(a *archive.Archive, o archive.VerifyOptions) *archive.Report {
	p.Helper()
	r, err := a.Verify(p.Context(), o)
	if err != nil {
		p.Fatal(err)
	}
	return r
}

// expectFinding expects no finding if kind is empty.
func (p *env) expectFinding(a *archive.Archive, o archive.VerifyOptions, kind, key string) *archive.Report {
	p.Helper()
	r := p.report(a, o)
	found := len(r.Findings) == 1 && r.Findings[0].Kind == kind && (key == "" || slices.Contains(r.Findings[0].Keys, key))
	if kind == "" && len(r.Findings) > 0 || kind != "" && !found {
		p.Errorf("%+v\nwant a finding %q of %q", r, kind, key)
	}
	return r
}

func TestVerifyPending(t *testing.T) {
	withEnv(t, 1, func(p *env) {
		p.holdPut("ndjson")
		a := p.archive("ndjson")
		key := p.progress(p.shards()[0]).Intent.Objects[0].Key
		r := p.expectFinding(a, archive.VerifyOptions{}, "", "")
		if len(r.Notes) != 1 || r.Notes[0].Kind != archive.Pending || !slices.Contains(r.Notes[0].Keys, key) {
			t.Errorf("%+v: want a note that %s is pending", r.Notes, key)
		}
		p.runWorker(a)
		if r := p.expectVerified(a, 3); len(r.Notes) > 0 {
			t.Errorf("%+v: want no notes", r.Notes)
		}
	})
}

// Without registers, verify uses the metadata of the objects.
func TestVerifyMalformed(t *testing.T) {
	withEnv(t, 1, func(p *env) {
		a, shard := p.archive("ndjson"), p.shards()[0]
		a.Stream = malformingStream{a.Stream}
		p.put(shard, 2)
		number, err := p.stream.Put(p.Context(), shard, "key", []byte("bad"))
		if err != nil {
			t.Fatal(err)
		}
		p.put(shard, 2)
		p.runWorker(a)
		if r := p.expectVerified(a, 4); r.Malformed != 1 {
			t.Errorf("%+v: want 1 malformed record", r)
		}
		kept := "p/_pawl/malformed/" + shard + "-" + string(number) + ".json"
		body := p.body(kept)
		p.remove(kept)
		p.expectFinding(a, archive.VerifyOptions{}, archive.Missing, "")

		p.putObject(kept, body)
		p.ledger = ledger.NewRows(memory.New())
		if _, err := p.archive("ndjson").Recover(p.Context()); err != nil {
			t.Fatal(err)
		}
		p.put(shard, 1)
		p.runWorker(p.archive("ndjson"))
		p.expectVerified(p.archive("ndjson"), 5)
		p.remove(kept)
		p.expectFinding(p.archive("ndjson"), archive.VerifyOptions{Deep: true}, archive.Missing, slices.Sorted(maps.Keys(p.objects()))[0])
	})
}

func TestVerifyPendingMalformed(t *testing.T) {
	withEnv(t, 1, func(p *env) {
		shard := p.shards()[0]
		number, err := p.stream.Put(p.Context(), shard, "\xff", []byte("odd"))
		if err != nil {
			t.Fatal(err)
		}
		p.holdPut("ndjson")
		p.expectFinding(p.archive("ndjson"), archive.VerifyOptions{}, "", "")
		p.remove("p/_pawl/malformed/" + shard + "-" + string(number) + ".json")
		p.expectFinding(p.archive("ndjson"), archive.VerifyOptions{}, archive.Missing, p.progress(shard).Intent.Objects[0].Key)
	})
}

type unreadableStore struct {
	archive.Store
	key string
	err error
}

func (s unreadableStore) Get(ctx context.Context, ref event.Object) (bucket.Info, io.ReadCloser, error) {
	if ref.Key == s.key {
		return bucket.Info{}, nil, s.err
	}
	return s.Store.Get(ctx, ref)
}

func TestVerifyUnreadable(t *testing.T) {
	for name, err := range map[string]error{"denied": bucket.ErrDenied, "unavailable": bucket.ErrUnavailable} {
		t.Run(name, func(t *testing.T) {
			withEnv(t, 1, func(p *env) {
				p.put(p.shards()[0], 2)
				p.runWorker(p.archive("ndjson"))
				p.put(p.shards()[0], 3)
				p.runWorker(p.archive("ndjson"))
				a, key := p.archive("ndjson"), slices.Sorted(maps.Keys(p.objects()))[0]
				a.Store = unreadableStore{p.store, key, err}
				if r := p.expectFinding(a, archive.VerifyOptions{Deep: true}, archive.Unreadable, key); r.Records != 3 {
					t.Errorf("%d entries were read, want 3", r.Records)
				}
			})
		})
	}
}

func TestVerifyWindow(t *testing.T) {
	withEnv(t, 1, func(p *env) {
		began, stop := time.Now(), p.run(p.archive("ndjson"))
		for range 6 { // in each of the minutes 0, 10, … 50
			p.put(p.shards()[0], 1)
			time.Sleep(10 * time.Minute)
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		a, keys := p.archive("ndjson"), slices.Sorted(maps.Keys(p.objects()))
		window := func(from, to int) archive.VerifyOptions {
			return archive.VerifyOptions{Deep: true, From: began.Add(time.Duration(from) * time.Minute), To: began.Add(time.Duration(to) * time.Minute)}
		}
		if r := p.expectFinding(a, window(10, 40), "", ""); r.Objects != 3 || r.Records != 3 {
			t.Errorf("%+v: want 3 objects", r)
		}
		p.expectFinding(a, window(45, 70), "", "")
		p.expectFinding(a, window(60, 70), "", "")
		p.expectFinding(a, archive.VerifyOptions{To: began.Add(5 * time.Minute)}, "", "")

		p.without(keys[2], func() {
			p.expectFinding(a, window(10, 40), archive.Missing, keys[3])
			p.expectFinding(a, window(30, 60), "", "")
		})
		p.without(keys[5], func() {
			p.expectFinding(a, window(10, 40), "", "")
			p.expectFinding(a, window(30, 60), archive.Missing, keys[4])
			p.expectFinding(a, window(45, 60), archive.Missing, "")
		})
		p.without(keys[0], func() {
			p.expectFinding(a, archive.VerifyOptions{To: began.Add(15 * time.Minute)}, archive.Missing, keys[1])
		})
	})
}

// without restores the deleted object after do.
func (p *env) without(key string, do func()) {
	p.Helper()
	ref := event.Object{Bucket: "b", Key: key}
	info, r, err := p.store.Get(p.Context(), ref)
	if err != nil {
		p.Fatal(err)
	}
	p.remove(key)
	do()
	body, err := io.ReadAll(r)
	if err != nil {
		p.Fatal(err)
	}
	o := bucket.Object{Body: strings.NewReader(string(body)), Size: int64(len(body)), Metadata: info.Metadata}
	if _, err := p.store.Put(p.Context(), ref, o, bucket.Condition{}); err != nil {
		p.Fatal(err)
	}
}

func (p *env) body(key string) string {
	p.Helper()
	_, r, err := p.store.Get(p.Context(), event.Object{Bucket: "b", Key: key})
	if err != nil {
		p.Fatal(err)
	}
	body, err := io.ReadAll(r)
	if err != nil {
		p.Fatal(err)
	}
	return string(body)
}
