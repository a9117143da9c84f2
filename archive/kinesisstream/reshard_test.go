package kinesisstream

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"golang.org/x/sync/errgroup"

	"github.com/pawlhq/pawl/archive"
	"github.com/pawlhq/pawl/proof/servertest"
)

// reshard splits and merges shards while records are put and read. Each record must be read once.
func reshard(t *testing.T, server *servertest.Streams, n int) {
	p := newProducer(t, server, server.NewStream(t, 2))
	f := follower{s: p.Stream(), started: make(map[string]bool), ended: make(map[string]bool), seen: make(map[int]int), news: make(chan struct{}, 1)}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	g, ctx := errgroup.WithContext(ctx)
	f.g = g
	g.Go(func() error { return f.look(ctx) })
	for i, change := range []func() error{
		func() error { return p.Split(ctx, "shardId-000000000000") },
		func() error { return p.Split(ctx, "shardId-000000000001") },
		func() error { return p.Merge(ctx, "shardId-000000000002", "shardId-000000000003") },
		func() error {
			if !server.CanReshard {
				return p.Split(ctx, "shardId-000000000004")
			}
			_, err := p.client.UpdateShardCount(ctx, &kinesis.UpdateShardCountInput{
				StreamName: &p.name, TargetShardCount: aws.Int32(2), ScalingType: "UNIFORM_SCALING",
			})
			server.WaitActive(t, p.name)
			return err
		},
		func() error { return nil },
	} {
		var changing errgroup.Group
		changing.Go(func() error {
			return server.Produce(ctx, p.name, servertest.Load{From: n * i / 5, To: n * (i + 1) / 5, Size: 100, Aggregates: 7})
		})
		changing.Go(change)
		if err := changing.Wait(); err != nil {
			t.Fatal(err)
		}
		p.Expire()
		p.Throttle(2)
	}
	f.wait(ctx, n)
	stop()
	if err := g.Wait(); err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	for i := range n {
		if f.seen[i] != 1 {
			t.Fatalf("record %d is read %d times", i, f.seen[i])
		}
	}
	t.Logf("%d records through %d shards, %d of them closed", n, len(f.started), len(f.ended))
	if len(f.started) < 7 || len(f.ended) < 4 {
		t.Errorf("only %d shards, %d of them closed", len(f.started), len(f.ended))
	}
}

// follower reads each shard after its parents.
type follower struct {
	s archive.Stream
	g *errgroup.Group

	mu      sync.Mutex
	started map[string]bool
	ended   map[string]bool
	seen    map[int]int
	news    chan struct{}
}

func (f *follower) look(ctx context.Context) error {
	shards, err := f.s.Shards(ctx)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, one := range shards {
		waits := slices.ContainsFunc(one.Parents, func(id string) bool { return !f.ended[id] })
		if !waits && !f.started[one.ID] {
			f.started[one.ID] = true
			f.g.Go(func() error { return f.read(ctx, one.ID) })
		}
	}
	return nil
}

func (f *follower) read(ctx context.Context, shard string) error {
	r, err := f.s.Open(ctx, shard, archive.Position{})
	if err != nil {
		return err
	}
	for {
		page, err := r.Next(ctx)
		if errors.Is(err, archive.ErrUnavailable) {
			continue
		}
		if err != nil {
			return err
		}
		if err := f.take(page); err != nil {
			return err
		}
		if page.End {
			f.mu.Lock()
			f.ended[shard] = true
			f.mu.Unlock()
			return f.look(ctx)
		}
	}
}

func (f *follower) take(page archive.Page) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range page.Records {
		for _, r := range e.UserRecords {
			i, err := servertest.Index(r.Data)
			if err != nil {
				return err
			}
			f.seen[i]++
		}
	}
	select {
	case f.news <- struct{}{}:
	default:
	}
	return nil
}

func (f *follower) wait(ctx context.Context, n int) {
	for {
		f.mu.Lock()
		done := len(f.seen) >= n
		f.mu.Unlock()
		if done {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-f.news:
		}
	}
}
