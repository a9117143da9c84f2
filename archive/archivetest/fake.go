package archivetest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/pawlhq/pawl/archive"
)

// Fake is a stream in memory with a retention of a day, and its Producer. The zero Fake has no
// shards.
type Fake struct {
	// Delay is the duration of each request. PageSize is the maximum number of records in a page;
	// zero means 100. Set both before the first request.
	Delay    time.Duration
	PageSize int

	mu        sync.Mutex
	shards    []*fakeShard
	created   time.Time
	number    int
	places    int // read positions below this one have expired
	throttled int
	deleted   bool
}

type fakeShard struct {
	archive.Shard
	records []archive.Record
}

var _ Producer = (*Fake)(nil)

// NewFake returns a stream with this number of shards.
func NewFake(shards int) *Fake {
	f := &Fake{created: time.Now().UTC()}
	for range shards {
		f.add()
	}
	return f
}

var errFake = errors.New("injected fault")

func (f *Fake) next() archive.Number {
	f.number++
	return archive.Number("4" + fmt.Sprintf("%055d", f.number))
}

func (f *Fake) add(parents ...string) {
	f.shards = append(f.shards, &fakeShard{Shard: archive.Shard{
		ID: fmt.Sprintf("shardId-%012d", len(f.shards)), Parents: parents, First: f.next(),
	}})
}

// begin returns a locked mutex, which the caller must unlock.
func (f *Fake) begin(ctx context.Context) (*sync.Mutex, error) {
	if f.Delay > 0 {
		t := time.NewTimer(f.Delay)
		defer t.Stop()
		select {
		case <-ctx.Done():
		case <-t.C:
		}
	}
	f.mu.Lock()
	switch {
	case ctx.Err() != nil:
		return &f.mu, ctx.Err()
	case f.deleted:
		return &f.mu, fmt.Errorf("fake: %w", archive.ErrNoStream)
	}
	return &f.mu, nil
}

func (f *Fake) shard(id string) (*fakeShard, error) {
	i := slices.IndexFunc(f.shards, func(s *fakeShard) bool { return s.ID == id })
	if i < 0 {
		return nil, fmt.Errorf("fake: no shard %s: %w", id, archive.ErrNoStream)
	}
	return f.shards[i], nil
}

// Stream implements [Producer].
func (f *Fake) Stream() archive.Stream { return f }

// Missing implements [Producer].
func (f *Fake) Missing() archive.Stream { return &Fake{deleted: true} }

// Put implements [Producer].
func (f *Fake) Put(ctx context.Context, shard, key string, data ...[]byte) (archive.Number, error) {
	mu, err := f.begin(ctx)
	defer mu.Unlock()
	if err != nil {
		return "", err
	}
	s, err := f.shard(shard)
	if err == nil && s.Last != "" {
		err = fmt.Errorf("fake: shard %s is closed", shard)
	}
	if err != nil {
		return "", err
	}
	e := archive.Record{Number: f.next(), Arrival: time.Now().UTC().Truncate(time.Millisecond), PartitionKey: key}
	for i, d := range data {
		r := archive.UserRecord{Number: e.Number, Sub: i, PartitionKey: key, Arrival: e.Arrival, Data: d}
		if len(data) == 1 {
			r.Sub = -1
		}
		e.UserRecords = append(e.UserRecords, r)
	}
	s.records = append(s.records, e)
	return e.Number, nil
}

// Split implements [Producer].
func (f *Fake) Split(ctx context.Context, shard string) error {
	return f.reshard(ctx, 2, shard)
}

// Merge implements [Producer].
func (f *Fake) Merge(ctx context.Context, shard, neighbour string) error {
	return f.reshard(ctx, 1, shard, neighbour)
}

func (f *Fake) reshard(ctx context.Context, children int, parents ...string) error {
	mu, err := f.begin(ctx)
	defer mu.Unlock()
	for _, id := range parents {
		s, missing := f.shard(id)
		if err = errors.Join(err, missing); err != nil {
			return err
		}
		s.Last = f.next()
	}
	for range children {
		f.add(parents...)
	}
	return err
}

// Trim implements [Producer].
func (f *Fake) Trim(shard string, upTo archive.Number) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s, err := f.shard(shard); err == nil {
		s.records = slices.DeleteFunc(slices.Clone(s.records), func(e archive.Record) bool { return e.Number.Compare(upTo) <= 0 })
	}
}

// Throttle implements [Producer].
func (f *Fake) Throttle(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.throttled = n
}

// Expire implements [Producer].
func (f *Fake) Expire() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.places++
}

// Identify implements [archive.Stream].
func (f *Fake) Identify(ctx context.Context) (archive.StreamID, time.Duration, error) {
	mu, err := f.begin(ctx)
	defer mu.Unlock()
	return archive.StreamID{ARN: "arn:fake:stream/" + strconv.FormatInt(f.created.UnixNano(), 36), Created: f.created}, 24 * time.Hour, err
}

// Shards implements [archive.Stream].
func (f *Fake) Shards(ctx context.Context) (all []archive.Shard, err error) {
	mu, err := f.begin(ctx)
	defer mu.Unlock()
	for _, s := range f.shards {
		all = append(all, s.Shard)
	}
	return all, err
}

type fakeReader struct {
	f     *Fake
	shard *fakeShard
	from  archive.Position
	last  archive.Number
	place int
}

// Open implements [archive.Stream].
func (f *Fake) Open(ctx context.Context, shard string, from archive.Position) (archive.Reader, error) {
	mu, err := f.begin(ctx)
	defer mu.Unlock()
	if err != nil {
		return nil, err
	}
	s, err := f.shard(shard)
	if err != nil {
		return nil, err
	}
	if from.At != "" {
		err = s.holds(from.At)
	}
	return &fakeReader{f: f, shard: s, from: from, place: f.places}, err
}

func (s *fakeShard) holds(n archive.Number) error {
	if slices.ContainsFunc(s.records, func(e archive.Record) bool { return e.Number == n }) {
		return nil
	}
	return fmt.Errorf("fake: record %s of %s: %w", n, s.ID, archive.ErrGone)
}

func (r *fakeReader) Next(ctx context.Context) (page archive.Page, err error) {
	mu, err := r.f.begin(ctx)
	defer mu.Unlock()
	if err != nil {
		return page, err
	}
	if r.f.throttled > 0 {
		r.f.throttled--
		return page, fmt.Errorf("fake: throttled: %w: %w", archive.ErrUnavailable, errFake)
	}
	if r.place != r.f.places && r.last != "" {
		if err := r.shard.holds(r.last); err != nil {
			return page, err
		}
	}
	r.place = r.f.places
	ahead := slices.DeleteFunc(slices.Clone(r.shard.records), func(e archive.Record) bool {
		return e.Number.Compare(r.last) <= 0 || e.Number.Compare(r.from.At) < 0 || e.Arrival.Before(r.from.Time)
	})
	if n := cmp.Or(r.f.PageSize, 100); len(ahead) > n {
		page.Behind = max(time.Since(ahead[n].Arrival), time.Millisecond)
		ahead = ahead[:n]
	} else {
		page.End = r.shard.Last != ""
	}
	if len(ahead) > 0 {
		r.last = ahead[len(ahead)-1].Number
	}
	page.Records = ahead
	return page, nil
}
