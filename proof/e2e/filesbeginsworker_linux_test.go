package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"iter"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/pawlhq/pawl/files"
)

const beginVar = "PAWL_E2E_BEGINS"

const beginClients = 32

type beginWork struct {
	Store  string
	Place  int
	Seed   uint64
	Begins int // per client
	Next   []clientPosition
	Days   int
}

type clientPosition struct {
	N, Step int
	ID      string
}

type beginAnswer struct {
	Client  int
	ID      string
	Refused bool
}

type beginStep int

const (
	stepBegin beginStep = iota
	stepComplete
	stepDelete
	stepUndelete
)

type beginPlan struct {
	entity, key string
	promise     files.Promise
	steps       []beginStep
}

// Every eighth upload is shared with a client of the other process, and is only begun. Some uploads have no
// idempotency key.
func (b *beginWork) plan(client, n int) beginPlan {
	place := b.Place
	if n%8 == 0 {
		place = 0
	}
	rng := rand.New(rand.NewPCG(b.Seed, uint64(place)<<48|uint64(client)<<32|uint64(n)))
	p := beginPlan{entity: "album", key: fmt.Sprintf("key %d/%d/%d", place, client, n), steps: []beginStep{stepBegin}}
	switch rng.IntN(4) {
	case 0:
		p.entity = fmt.Sprintf("album-%d", rng.IntN(beginAlbums))
	case 1:
		p.entity = "small" // its quota is exceeded
	}
	p.promise = files.Promise{Size: rng.Int64N(1 << 20), ContentType: "text/plain", SHA256: [32]byte{byte(n), byte(client)}}
	if n%8 == 0 {
		return p
	}
	if rng.IntN(10) == 0 {
		p.key = ""
	}
	if rng.IntN(2) == 0 {
		p.steps = append(p.steps, stepComplete)
	}
	for rng.IntN(2) == 0 {
		p.steps = append(p.steps, stepDelete)
		if rng.IntN(2) == 0 {
			break
		}
		p.steps = append(p.steps, stepUndelete)
	}
	return p
}

const beginAlbums = 20

func beginEntities() iter.Seq[string] {
	return func(yield func(string) bool) {
		if !yield("album") || !yield("small") {
			return
		}
		for i := range beginAlbums {
			if !yield(fmt.Sprintf("album-%d", i)) {
				return
			}
		}
	}
}

func beginLimit(entity string) files.Usage {
	if entity == "small" {
		return files.Usage{Bytes: 100 << 20, Open: math.MaxInt64}
	}
	return files.Usage{Bytes: math.MaxInt64, Open: math.MaxInt64}
}

// uploaded decides whether a file's bytes exist before its upload is completed.
func uploaded(id string) bool {
	h := fnv.New32a()
	_, _ = io.WriteString(h, id)
	return h.Sum32()%4 != 0
}

func beginFiles(ctx context.Context) error {
	var b beginWork
	if err := json.NewDecoder(os.Stdin).Decode(&b); err != nil {
		return err
	}
	records, err := openRecords(ctx, b.Store)
	for n := 0; err != nil && n < beginTries; n++ {
		records, err = openRecords(ctx, b.Store)
	}
	if err != nil {
		return err
	}
	defer records.Close()
	s := &files.Service{Index: files.NewIndex(records), Times: files.DefaultTimes(), Prefix: "files/", Limit: beginLimit, Now: b.now}
	o := &beginObjects{index: s.Index, now: b.now, removed: map[string]bool{}}
	s.Objects = o
	if b.Days > 0 {
		o.onHead = func() error { return writeAnswer(beginAnswer{}) }
		return b.sweep(ctx, s)
	}
	var g errgroup.Group
	for client, at := range b.Next {
		g.Go(func() error { return b.runClient(ctx, s, client, at) })
	}
	return g.Wait()
}

func (b *beginWork) now() time.Time { return time.Now().AddDate(0, 0, b.Days) }

const beginTries = 1000

func (b *beginWork) runClient(ctx context.Context, s *files.Service, client int, at clientPosition) error {
	for ; at.N < b.Begins; at = (clientPosition{N: at.N + 1}) {
		p := b.plan(client, at.N)
		for ; at.Step < len(p.steps); at.Step++ {
			f, err := p.send(ctx, s, p.steps[at.Step], at.ID)
			for n := 1; err != nil && !errors.Is(err, files.ErrQuota) && n < beginTries; n++ {
				f, err = p.send(ctx, s, p.steps[at.Step], at.ID)
			}
			if err != nil && !errors.Is(err, files.ErrQuota) {
				return fmt.Errorf("step %d of %s: %w", p.steps[at.Step], at.ID, err)
			}
			at.ID = f.ID
			if writeErr := writeAnswer(beginAnswer{Client: client, ID: f.ID, Refused: err != nil}); writeErr != nil || err != nil {
				if writeErr != nil {
					return writeErr
				}
				break
			}
		}
	}
	return nil
}

// An answer is written in one call, so that it is complete or missing.
func writeAnswer(a beginAnswer) error {
	line, err := json.Marshal(a)
	if err == nil {
		_, err = os.Stdout.Write(append(line, '\n'))
	}
	return err
}

func (p *beginPlan) send(ctx context.Context, s *files.Service, step beginStep, id string) (f files.File, err error) {
	switch step {
	case stepBegin:
		f, _, err = s.Upload(ctx, p.entity, p.key, p.promise)
	case stepComplete:
		f, err = s.Reconcile(ctx, id, true)
	case stepDelete:
		f, err = s.Delete(ctx, id)
	case stepUndelete:
		f, err = s.Undelete(ctx, id)
		if errors.Is(err, files.ErrState) { // an earlier try undeleted it, without an answer
			if f, err = s.Get(ctx, id); err == nil && f.State != files.Pending {
				err = fmt.Errorf("%s cannot be undeleted: it is %s", id, f.State)
			}
		}
	}
	return f, err
}

func (b *beginWork) sweep(ctx context.Context, s *files.Service) error {
	w := &files.Sweeper{Service: s, Concurrency: beginClients}
	for n := 0; n < beginTries; n++ {
		looks, err := w.Round(ctx)
		if err == nil && looks == 0 {
			return nil
		}
		w = &files.Sweeper{Service: s, Concurrency: beginClients} // a new sweeper has no backoff for failed files
	}
	return errors.New("files are always due")
}

// beginObjects has the promised bytes of all uploaded files, until they are removed.
type beginObjects struct {
	files.Objects
	index  *files.Index
	now    func() time.Time
	onHead func() error

	mu      sync.Mutex
	removed map[string]bool
}

func (*beginObjects) Sign(context.Context, *files.File, time.Time) (files.SignedRequest, error) {
	return files.SignedRequest{URL: "http://localhost"}, nil
}

func (o *beginObjects) Remove(_ context.Context, key string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.removed[key] = true
	return nil
}

func (o *beginObjects) Stat(ctx context.Context, key string) (files.ObjectInfo, error) {
	id := strings.TrimPrefix(key, "files/")
	f, err := o.index.Load(ctx, id)
	if err == nil && o.onHead != nil {
		err = o.onHead()
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	seen := files.ObjectInfo{Date: o.now()}
	if err == nil && uploaded(id) && !o.removed[key] {
		seen.Found, seen.Size, seen.SHA256 = true, f.Size, f.SHA256
	}
	return seen, err
}
