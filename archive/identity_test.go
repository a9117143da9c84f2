package archive_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawlhq/pawl/archive"
	"github.com/pawlhq/pawl/archive/archivetest"
)

// recreatableStream returns no more records to readers from before the recreation.
type recreatableStream struct {
	now     atomic.Pointer[archivetest.Fake]
	opening func()
}

// Identify implements [archive.Stream]. The ARN does not change when the stream is created
// again.
func (s *recreatableStream) Identify(ctx context.Context) (archive.StreamID, time.Duration, error) {
	id, retention, err := s.now.Load().Identify(ctx)
	id.ARN = "arn:fake:stream/clicks"
	return id, retention, err
}

func (s *recreatableStream) Shards(ctx context.Context) ([]archive.Shard, error) {
	return s.now.Load().Shards(ctx)
}

func (s *recreatableStream) Open(ctx context.Context, shard string, from archive.Position) (archive.Reader, error) {
	if s.opening != nil {
		s.opening()
	}
	return s.now.Load().Open(ctx, shard, from)
}

func (p *env) recreate(s *recreatableStream) {
	p.Helper()
	time.Sleep(time.Second)
	p.stream = newStream(len(p.shards()))
	for range 100 { // a later stream has higher numbers
		p.put(p.shards()[0], 1)
	}
	s.now.Store(p.stream)
}

func (p *env) expectBothNamed(err error, was, now *archivetest.Fake) {
	p.Helper()
	for _, f := range []*archivetest.Fake{was, now} {
		id, _, _ := f.Identify(p.Context())
		if !errors.Is(err, archive.ErrClaimed) || !strings.Contains(err.Error(), "created at "+id.Created.Format(time.RFC3339Nano)) {
			p.Errorf("%v: want ErrClaimed that names the stream created at %v", err, id.Created)
		}
	}
}

// The error must name both streams, and no record of the new stream may be stored.
func TestStreamIsRecreated(t *testing.T) {
	t.Run("rebalance", func(t *testing.T) {
		withEnv(t, 1, func(p *env) {
			was, s := p.stream, &recreatableStream{}
			s.now.Store(was)
			a, ended := p.archive("ndjson"), make(chan error, 1)
			a.Stream = s
			go func() { ended <- run(p.Context(), a) }()
			p.put(p.shards()[0], 10)
			time.Sleep(time.Minute)
			p.recreate(s)
			select {
			case err := <-ended:
				p.expectBothNamed(err, was, p.stream)
			case <-time.After(time.Minute):
				t.Error("the worker has not ended")
			}
			p.expectVerified(p.archive("ndjson"), 10)
		})
	})
	for name, when := range map[string]func(p *env, s *recreatableStream){
		"taken": func(p *env, s *recreatableStream) { p.recreate(s) },
		"opened": func(p *env, s *recreatableStream) { // after the worker became the owner
			s.opening = func() { s.opening = nil; p.recreate(s) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			withEnv(t, 1, func(p *env) {
				was, s := p.stream, &recreatableStream{}
				s.now.Store(was)
				p.put(p.shards()[0], 10)
				a := p.archive("ndjson")
				a.Stream = s
				c, err := a.Claim(p.Context())
				if err != nil {
					t.Fatal(err)
				}
				all, err := a.Shards(p.Context(), c)
				if err != nil {
					t.Fatal(err)
				}
				when(p, s)
				ctx, stop := context.WithTimeout(p.Context(), time.Minute)
				defer stop()
				p.expectBothNamed(a.RunShard(ctx, c, all, all[0].ID, 1), was, p.stream)
				p.expectVerified(p.archive("ndjson"), 0)
			})
		})
	}
}

func TestOtherPrefix(t *testing.T) {
	withEnv(t, 1, func(p *env) {
		p.put(p.shards()[0], 10)
		stop := p.run(p.archive("ndjson"))
		time.Sleep(time.Minute)
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		a := p.archive("ndjson")
		a.Prefix = "q/"
		if err := run(p.Context(), a); !errors.Is(err, archive.ErrClaimed) || !strings.Contains(err.Error(), "another name") {
			t.Errorf("another prefix: %v", err)
		}
	})
}
