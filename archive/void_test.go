package archive_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/pawlhq/pawl/archive"
	"github.com/pawlhq/pawl/archive/encode"
	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/store/memory"
)

// holdPut announces three records and stops the worker before the PUT arrives. send completes the
// PUT.
func (p *env) holdPut(format string) (send func() error) {
	p.Helper()
	p.put(p.shards()[0], 3)
	slow := &slowStore{Store: p.store}
	a := p.archive(format)
	a.Store = slow
	stop := p.run(a)
	time.Sleep(20 * time.Second)
	if err := stop(); err != nil || slow.held == nil {
		p.Fatalf("nothing was sent: %v", err)
	}
	return slow.held
}

// makeVoid announces three records, holds back their PUT until they have expired, and then stores
// five more records.
func (p *env) makeVoid(format string) (key string) {
	p.Helper()
	send, shard := p.holdPut(format), p.shards()[0]
	number, err := p.stream.Put(p.Context(), shard, "key", []byte("the last one that expires"))
	if err != nil {
		p.Fatal(err)
	}
	p.stream.Trim(shard, number)
	p.put(shard, 5)
	stop := p.run(p.archive(format))
	time.Sleep(time.Minute)
	if err := stop(); err != nil {
		p.Fatal(err)
	}
	if err := send(); !errors.Is(err, bucket.ErrPrecondition) {
		p.Errorf("the late PUT: %v", err)
	}
	for key := range p.objects() {
		info, err := p.store.Head(p.Context(), event.Object{Bucket: "b", Key: key})
		if err != nil {
			p.Fatal(err)
		}
		if info.Metadata["pawl-void"] != "" {
			return key
		}
	}
	p.Fatal("no object is marked as a void")
	return ""
}

// A program that reads all files of a folder finds no records in a void.
func TestVoidIsEmptyFile(t *testing.T) {
	for _, format := range encode.Formats {
		t.Run(string(format), func(t *testing.T) {
			withEnv(t, 1, func(p *env) {
				void := p.makeVoid(string(format))
				if r := p.expectVerified(p.archive("ndjson"), 5); r.Voids != 1 {
					t.Errorf("%+v: want 1 void", r)
				}
				records := 0
				for key := range p.objects() {
					if strings.HasSuffix(path.Base(key), "."+string(format)) {
						records += p.countRecords(key, format)
					}
				}
				if records != 5 {
					t.Errorf("the folder holds %d records, want 5", records)
				}
				// Earlier versions of Pawl wrote voids without bytes.
				if err := p.store.Delete(p.Context(), event.Object{Bucket: "b", Key: void}, bucket.Condition{}); err != nil {
					t.Fatal(err)
				}
				p.putObject(void, "")
				if r := p.expectVerified(p.archive("ndjson"), 5); r.Voids != 1 {
					t.Errorf("with an old void: %+v: want 1 void", r)
				}
			})
		})
	}
}

// countRecords reads an object as another program does.
func (p *env) countRecords(key string, format encode.Format) int {
	p.Helper()
	_, r, err := p.store.Get(p.Context(), event.Object{Bucket: "b", Key: key})
	if err != nil {
		p.Fatal(err)
	}
	body, err := io.ReadAll(r)
	if err != nil {
		p.Fatal(err)
	}
	if strings.HasSuffix(string(format), "parquet") {
		f, err := parquet.OpenFile(bytes.NewReader(body), int64(len(body)))
		if err != nil {
			p.Fatalf("%s: %v", key, err)
		}
		return int(f.NumRows())
	}
	records, err := encode.Codec{}.Decode(string(format), p.shards()[0], body)
	if err != nil {
		p.Fatalf("%s: %v", key, err)
	}
	return len(records)
}

type headCounter struct {
	archive.Store
	heads int
}

func (s *headCounter) Head(ctx context.Context, ref event.Object) (bucket.Info, error) {
	s.heads++
	return s.Store.Head(ctx, ref)
}

func TestSmallestObjectNeedsNoHead(t *testing.T) {
	for _, format := range encode.Formats {
		t.Run(string(format), func(t *testing.T) {
			withEnv(t, 1, func(p *env) {
				if _, err := p.stream.Put(p.Context(), p.shards()[0], "k", nil); err != nil {
					t.Fatal(err)
				}
				a := p.archive(string(format))
				stop := p.run(a)
				time.Sleep(time.Minute)
				if err := stop(); err != nil {
					t.Fatal(err)
				}
				counter := &headCounter{Store: p.store}
				a.Store = counter
				if p.expectVerified(a, 1); counter.heads > 0 {
					t.Errorf("verify sent %d HEAD requests", counter.heads)
				}
			})
		})
	}
}

type voidingStore struct {
	archive.Store
	before, after func() error
}

func (s *voidingStore) PutSigned(ctx context.Context, ref event.Object, o bucket.Object, c bucket.Condition, signed time.Time, valid time.Duration) (string, error) {
	void := o.Metadata["pawl-void"] != ""
	if void && s.before != nil {
		if err := s.before(); err != nil {
			return "", err
		}
	}
	etag, err := s.Store.PutSigned(ctx, ref, o, c, signed, valid)
	if void && s.after != nil {
		return etag, s.after()
	}
	return etag, err
}

func TestLandsBeforeVoid(t *testing.T) {
	withEnv(t, 1, func(p *env) {
		send, shard := p.holdPut("gz.parquet"), p.shards()[0]
		p.stream.Trim(shard, p.records(shard)[2].Number)
		p.put(shard, 2)
		a := p.archive("gz.parquet")
		a.Store = &voidingStore{Store: p.store, before: send}
		stop := p.run(a)
		time.Sleep(time.Minute)
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if r := p.expectVerified(p.archive("ndjson"), 3+2); r.Voids != 0 {
			t.Errorf("%+v: want no void", r)
		}
	})
}

// A recovery stores the records in a void's range if no gap covers them.
func TestRecoveryReadsPastVoid(t *testing.T) {
	withEnv(t, 1, func(p *env) {
		_, shard := p.holdPut("gz.parquet"), p.shards()[0]
		p.stream.Trim(shard, p.records(shard)[0].Number)
		p.put(shard, 3)
		ctx, crash := context.WithCancel(p.Context())
		a := p.archive("gz.parquet")
		a.Store = &voidingStore{Store: p.store, after: func() error { crash(); return bucket.ErrUnclear }}
		if err := run(ctx, a); err != nil {
			t.Fatal(err)
		}
		p.ledger = ledger.NewRows(memory.New())
		if _, err := p.archive("gz.parquet").Recover(p.Context()); err != nil {
			t.Fatal(err)
		}
		stop := p.run(p.archive("gz.parquet"))
		time.Sleep(time.Minute)
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if r := p.expectVerified(p.archive("ndjson"), 2+3); r.Voids != 1 {
			t.Errorf("%+v: want 1 void", r)
		}
	})
}
