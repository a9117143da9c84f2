package archive_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl/archive"
	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/event"
)

// slowUploads checks the signature at the start of an upload and, if ends is set, at its end as
// well, like some stores.
type slowUploads struct {
	archive.Store
	takes time.Duration
	ends  bool
	late  int // with an expired signature
}

func (s *slowUploads) PutSigned(ctx context.Context, ref event.Object, o bucket.Object, c bucket.Condition, signed time.Time, valid time.Duration) (string, error) {
	if isProbe(ref) {
		return s.Store.PutSigned(ctx, ref, o, c, signed, valid)
	}
	body, err := io.ReadAll(o.Body)
	if err != nil {
		return "", err
	}
	expired := func() bool { return time.Now().After(signed.Add(valid)) }
	late := expired()
	if !late {
		time.Sleep(s.takes)
		late = s.ends && expired()
	}
	if late {
		s.late++
		return "", fmt.Errorf("%w: %w", bucket.ErrExpired, bucket.ErrDenied) // as s3bucket returns it
	}
	o.Body = bytes.NewReader(body)
	return s.Store.Put(ctx, ref, o, c)
}

func TestBatchLongerThanSignature(t *testing.T) {
	for _, c := range []slowUploads{{takes: 2 * time.Minute}, {takes: 4 * time.Minute, ends: true}} {
		t.Run(fmt.Sprintf("%v,ends=%v", c.takes, c.ends), func(t *testing.T) {
			withEnv(t, 1, func(p *env) {
				for range 10 {
					p.put(p.shards()[0], 1)
					time.Sleep(time.Minute)
				}
				slow := &slowUploads{Store: p.store, takes: c.takes, ends: c.ends}
				p.worker("one", func(a *archive.Archive) { a.Store = slow })
				time.Sleep(10*(c.takes+time.Minute) + 10*time.Minute)
				p.stopWorkers()
				p.expectVerified(p.archive("ndjson"), 10)
				if slow.late > 1 || strings.Contains(p.log.String(), "cannot store more of a shard") {
					t.Errorf("%d uploads were too late, want at most 1; the log:\n%s", slow.late, p.log.String())
				}
			})
		})
	}
}

type deniedOnce struct {
	archive.Store
	denied bool
}

func (s *deniedOnce) PutSigned(ctx context.Context, ref event.Object, o bucket.Object, c bucket.Condition, signed time.Time, valid time.Duration) (string, error) {
	etag, err := s.Store.PutSigned(ctx, ref, o, c, signed, valid)
	if err != nil || s.denied || strings.Contains(ref.Key, "/_pawl/") {
		return etag, err
	}
	s.denied = true
	return "", bucket.ErrDenied
}

func TestStoredThoughDenied(t *testing.T) {
	withEnv(t, 1, func(p *env) {
		p.put(p.shards()[0], 3)
		store := &deniedOnce{Store: p.store}
		p.worker("one", func(a *archive.Archive) { a.Store = store })
		time.Sleep(time.Minute)
		p.stopWorkers()
		p.expectVerified(p.archive("ndjson"), 3)
		if !store.denied || strings.Contains(p.log.String(), "cannot store more of a shard") {
			t.Errorf("denied: %v; the log says\n%s", store.denied, p.log.String())
		}
	})
}

// No PUT may start later than 5 minutes after its intent, by the store's clock.
func TestWrongClock(t *testing.T) {
	for _, off := range []time.Duration{-2 * time.Hour, -10 * time.Minute, 10 * time.Minute, 2 * time.Hour} {
		t.Run(off.String(), func(t *testing.T) {
			withEnv(t, 1, func(p *env) {
				wrong := func(a *archive.Archive) {
					a.Now = func() time.Time { return time.Now().Add(off) }
				}
				p.put(p.shards()[0], 3)
				slow := &slowStore{Store: p.store}
				p.worker("held up", func(a *archive.Archive) { a.Store = slow; wrong(a) })
				time.Sleep(20 * time.Second)
				p.stopWorkers()
				if slow.held == nil {
					t.Fatal("nothing was sent")
				}
				time.Sleep(5 * time.Minute)
				if err := slow.held(); !errors.Is(err, bucket.ErrExpired) {
					t.Errorf("a PUT that begins 5 minutes after its intent: %v", err)
				}
				p.stops = nil
				p.worker("second", wrong)
				p.put(p.shards()[0], 3)
				time.Sleep(time.Minute)
				p.stopWorkers()
				p.expectVerified(p.archive("ndjson"), 6)
			})
		})
	}
}
