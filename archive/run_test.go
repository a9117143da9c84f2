package archive_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawlhq/pawl/archive"
	"github.com/pawlhq/pawl/archive/archivetest"
	"github.com/pawlhq/pawl/archive/encode"
	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/bucket/membucket"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/internal/virtualtime"
	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/store/memory"
)

type env struct {
	*testing.T
	stream *archivetest.Fake
	store  *membucket.Store
	ledger *ledger.Rows
	nonces atomic.Int64
	log    bytes.Buffer
	logger *slog.Logger
	ctx    context.Context // of the synctest bubble
	stops  []func() error
}

func (p *env) Context() context.Context { return p.ctx }

func withEnv(t *testing.T, shards int, test func(p *env)) {
	virtualtime.Test(t, func(t *testing.T) {
		p := &env{T: t, stream: newStream(shards), store: membucket.New(time.Now, []string{"b"}), ledger: ledger.NewRows(memory.New())}
		p.logger = slog.New(slog.NewTextHandler(&p.log, nil))
		var stop context.CancelFunc
		p.ctx, stop = context.WithCancel(context.Background())
		defer stop()
		test(p)
	})
}

func newStream(shards int) *archivetest.Fake {
	f := archivetest.NewFake(shards)
	f.Delay = 200 * time.Millisecond
	return f
}

func (p *env) archive(format string) *archive.Archive {
	a, err := archive.New(archive.Config{
		Name: "clicks", Bucket: "b", Prefix: "p/", Format: format, Owner: "test",
		Limits: archive.Limits{FlushBytes: 4000, FlushInterval: 10 * time.Second},
		Stream: p.stream.Stream(), Store: p.store, Registers: p.ledger, Codec: encode.Codec{},
		Logger: p.logger, Nonce: func() string { return fmt.Sprint("nonce-", p.nonces.Add(1)) },
	})
	if err != nil {
		p.Fatal(err)
	}
	return a
}

func run(ctx context.Context, a *archive.Archive) error {
	r := archive.Runner{Archives: []*archive.Archive{a}}
	return r.Run(ctx)
}

func (p *env) run(all ...*archive.Archive) (stop func() error) {
	ctx, cancel := context.WithCancel(p.Context())
	var workers sync.WaitGroup
	errs := make([]error, len(all))
	for i, a := range all {
		workers.Go(func() { errs[i] = run(ctx, a) })
	}
	return func() error {
		cancel()
		workers.Wait()
		return errors.Join(errs...)
	}
}

func (p *env) put(shard string, n int) {
	p.Helper()
	for range n {
		if _, err := p.stream.Put(p.Context(), shard, "key", bytes.Repeat([]byte("x"), 50)); err != nil {
			p.Fatal(err)
		}
	}
}

func (p *env) records(shard string) []archive.Record {
	p.Helper()
	r, err := p.stream.Open(p.Context(), shard, archive.Position{})
	if err != nil {
		p.Fatal(err)
	}
	var all []archive.Record
	for {
		page, err := r.Next(p.Context())
		if err != nil {
			p.Fatal(err)
		}
		if len(page.Records) == 0 {
			return all
		}
		all = append(all, page.Records...)
	}
}

func (p *env) shards() (ids []string) {
	p.Helper()
	all, err := p.stream.Stream().Shards(p.Context())
	if err != nil {
		p.Fatal(err)
	}
	for _, s := range all {
		ids = append(ids, s.ID)
	}
	return ids
}

func (p *env) expectVerified(a *archive.Archive, records int) *archive.Report {
	p.Helper()
	r, err := a.Verify(p.Context(), archive.VerifyOptions{Deep: true})
	if err != nil || len(r.Findings) > 0 || r.Records != records {
		p.Fatalf("%+v, %v: want %d entries and no findings\n%s", r, err, records, p.log.String())
	}
	return r
}

func TestRemovedClaimEndsWorker(t *testing.T) {
	withEnv(t, 1, func(p *env) {
		a, ended := p.archive("ndjson"), make(chan error, 1)
		go func() { ended <- run(p.Context(), a) }()
		p.put(p.shards()[0], 10)
		time.Sleep(time.Minute)
		right := p.ledger
		p.ledger = ledger.NewRows(memory.New())
		if _, err := p.archive("ndjson").Verify(p.Context(), archive.VerifyOptions{}); !errors.Is(err, archive.ErrLostRegisters) {
			t.Errorf("over another ledger: %v", err)
		}
		p.ledger = right
		p.expectVerified(p.archive("ndjson"), 10)
		claim := event.Object{Bucket: "b", Key: archive.ClaimKey(a.Prefix)}
		if err := p.store.Delete(p.Context(), claim, bucket.Condition{}); err != nil {
			t.Fatal(err)
		}
		if err := <-ended; !errors.Is(err, archive.ErrClaimed) || !errors.Is(a.Status().Err, archive.ErrClaimed) {
			t.Errorf("without a claim: %v", err)
		}
		p.ledger = ledger.NewRows(memory.New())
		if _, err := p.archive("ndjson").Claim(p.Context()); !errors.Is(err, archive.ErrClaimed) {
			t.Errorf("without claim and registers: %v", err)
		}
		if _, err := p.archive("ndjson").Recover(p.Context()); err != nil {
			t.Fatal(err)
		}
		stop := p.run(p.archive("ndjson.gz"))
		p.put(p.shards()[0], 5)
		time.Sleep(2 * time.Minute)
		stop()
		p.expectVerified(p.archive("ndjson"), 15)
	})
}

// One of the shards is split and merged again.
func TestRun(t *testing.T) {
	withEnv(t, 4, func(p *env) {
		stop := p.run(p.archive("ndjson.gz"), p.archive("zst.parquet"), p.archive("ndjson"))
		for _, id := range p.shards() {
			p.put(id, 200)
		}
		time.Sleep(time.Minute)
		if err := p.stream.Split(p.Context(), p.shards()[0]); err != nil {
			t.Fatal(err)
		}
		ids := p.shards()
		children := ids[len(ids)-2:]
		for _, id := range children {
			p.put(id, 100)
		}
		time.Sleep(time.Minute)
		if err := p.stream.Merge(p.Context(), children[0], children[1]); err != nil {
			t.Fatal(err)
		}
		ids = p.shards()
		p.put(ids[len(ids)-1], 50)
		time.Sleep(2 * time.Minute)
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if r := p.expectVerified(p.archive("ndjson"), 4*200+2*100+50); r.Gaps > 0 || r.Shards != 7 {
			t.Errorf("%+v", r)
		}
	})
}

type malformingStream struct{ archive.Stream }

func (s malformingStream) Open(ctx context.Context, shard string, from archive.Position) (archive.Reader, error) {
	r, err := s.Stream.Open(ctx, shard, from)
	return malformingReader{r}, err
}

type malformingReader struct{ archive.Reader }

func (r malformingReader) Next(ctx context.Context) (archive.Page, error) {
	page, err := r.Reader.Next(ctx)
	for i := range page.Records {
		if e := &page.Records[i]; string(e.UserRecords[0].Data) == "bad" {
			e.Malformed, e.Raw, e.UserRecords = errors.New("no message"), e.UserRecords[0].Data, nil
		}
	}
	return page, err
}

func TestMalformed(t *testing.T) {
	withEnv(t, 1, func(p *env) {
		a := p.archive("ndjson")
		a.Stream = malformingStream{a.Stream}
		stop := p.run(a)
		shard := p.shards()[0]
		p.put(shard, 3)
		number, err := p.stream.Put(p.Context(), shard, "key", []byte("bad"))
		if err != nil {
			t.Fatal(err)
		}
		p.put(shard, 3)
		odd, err := p.stream.Put(p.Context(), shard, "\xff", []byte("odd"))
		if err != nil {
			t.Fatal(err)
		}
		p.put(shard, 3)
		time.Sleep(time.Minute)
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		p.expectVerified(p.archive("ndjson"), 9)
		for n, raw := range map[archive.Number]string{number: `"raw":"YmFk"`, odd: `"raw":"b2Rk"`} {
			_, body, err := p.store.Get(p.Context(), event.Object{Bucket: "b", Key: "p/_pawl/malformed/" + shard + "-" + string(n) + ".json"})
			if err != nil {
				t.Fatal(err)
			}
			if text, err := io.ReadAll(body); err != nil || !strings.Contains(string(text), raw) {
				t.Errorf("%s, %v", text, err)
			}
		}
	})
}

func TestForeignObject(t *testing.T) {
	withEnv(t, 1, func(p *env) {
		a := p.archive("ndjson")
		shard := p.shards()[0]
		p.put(shard, 1)
		stop := p.run(a)
		time.Sleep(time.Minute)
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		var key string
		for info, err := range p.store.List(p.Context(), "b", "p/20", "") {
			if err != nil {
				t.Fatal(err)
			}
			key = info.Key
		}
		_, r, err := p.store.Get(p.Context(), event.Object{Bucket: "b", Key: key})
		if err != nil {
			t.Fatal(err)
		}
		ours, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			body   string
			stored bool
		}{{"somebody else's", false}, {string(ours), true}} {
			p.ledger, p.store = ledger.NewRows(memory.New()), membucket.New(time.Now, []string{"b"})
			if _, err := p.archive("ndjson").Claim(p.Context()); err != nil {
				t.Fatal(err)
			}
			p.putObject(key, c.body)
			p.log.Reset()
			stop := p.run(p.archive("ndjson"))
			time.Sleep(time.Minute)
			if err := stop(); err != nil {
				t.Fatal(err)
			}
			if said := strings.Contains(p.log.String(), "s3://b/"+key+" holds another object"); said == c.stored {
				t.Errorf("%q: the log says\n%s", c.body, p.log.String())
			}
			_, r, err := p.store.Get(p.Context(), event.Object{Bucket: "b", Key: key})
			if err != nil {
				t.Fatal(err)
			}
			if got, err := io.ReadAll(r); err != nil || string(got) != c.body {
				t.Errorf("%q was written over by %q, %v", c.body, got, err)
			}
		}
	})
}

func (p *env) putObject(key, body string) {
	p.Helper()
	o := bucket.Object{Body: strings.NewReader(body), Size: int64(len(body))}
	if _, err := p.store.Put(p.Context(), event.Object{Bucket: "b", Key: key}, o, bucket.Condition{}); err != nil {
		p.Fatal(err)
	}
}

func TestClaims(t *testing.T) {
	withEnv(t, 1, func(p *env) {
		p.put(p.shards()[0], 10)
		stop := p.run(p.archive("ndjson"))
		time.Sleep(time.Minute)
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		was := p.stream
		p.stream = newStream(1)
		if err := run(p.Context(), p.archive("ndjson")); !errors.Is(err, archive.ErrClaimed) {
			t.Errorf("another stream: %v", err)
		}
		p.stream, p.ledger = was, ledger.NewRows(memory.New())
		if err := run(p.Context(), p.archive("ndjson")); !errors.Is(err, archive.ErrLostRegisters) {
			t.Errorf("another ledger: %v", err)
		}
		if c, err := p.archive("ndjson").Recover(p.Context()); err != nil || c.Generation != 2 {
			t.Fatalf("%+v, %v", c, err)
		}
		stop = p.run(p.archive("ndjson"))
		p.put(p.shards()[0], 10)
		time.Sleep(time.Minute)
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		p.expectVerified(p.archive("ndjson"), 20)
	})
}
