// Package archivetest contains the conformance suite for an [archive.Stream], and a stream in
// memory.
package archivetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlhq/pawl/archive"
)

// Producer puts records into a stream, and injects faults. It is safe for concurrent use.
type Producer interface {
	Stream() archive.Stream
	// Missing returns a stream that does not exist.
	Missing() archive.Stream
	// Put puts one record, or several as an aggregate.
	Put(ctx context.Context, shard, key string, data ...[]byte) (archive.Number, error)
	Split(ctx context.Context, shard string) error
	Merge(ctx context.Context, shard, neighbour string) error
	// Trim makes the records up to a number expire.
	Trim(shard string, upTo archive.Number)
	// Throttle makes the next n reads fail.
	Throttle(n int)
	// Expire makes the read positions of all readers expire.
	Expire()
}

// InexactEnds is a Producer whose server does not report the exact end of a closed shard.
type InexactEnds interface{ HasInexactEnds() bool }

// Harness creates a stream with this number of open shards.
type Harness func(t *testing.T, shards int) Producer

// Run checks the contract of [archive.Stream].
func Run(t *testing.T, h Harness) {
	for _, tc := range []struct {
		name string
		test func(*suite)
	}{
		{"identity", (*suite).identity},
		{"shards", (*suite).shards},
		{"content", (*suite).content},
		{"at an entry", (*suite).atEntry},
		{"at a time", (*suite).atTime},
		{"throttled", (*suite).throttled},
		{"expired", (*suite).expired},
		{"gone at the start", (*suite).goneAtStart},
		{"gone on the way", (*suite).goneWhileReading},
		{"gone in a closed shard", (*suite).goneInClosedShard},
		{"split", (*suite).split},
		{"merge", (*suite).merge},
		{"missing", (*suite).missing},
		{"cancelled", (*suite).cancelled},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			p := h(t, 2)
			tc.test(&suite{T: t, Producer: p, s: p.Stream()})
		})
	}
}

type suite struct {
	*testing.T
	Producer
	s archive.Stream
}

func (s *suite) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *suite) open() (ids []string) {
	s.Helper()
	all, err := s.s.Shards(s.Context())
	s.must(err)
	for _, one := range all {
		if one.Last == "" {
			ids = append(ids, one.ID)
		}
	}
	return ids
}

func (s *suite) fill(shard string, n int) (numbers []archive.Number) {
	s.Helper()
	for i := range n {
		data := [][]byte{fmt.Appendf(nil, "%s %d", shard, i)}
		if i%3 == 1 {
			data = append(data, nil, []byte{0xff})
		}
		number, err := s.Put(s.Context(), shard, fmt.Sprint("key ", i), data...)
		s.must(err)
		numbers = append(numbers, number)
	}
	return numbers
}

func (s *suite) reader(shard string, from archive.Position) archive.Reader {
	s.Helper()
	r, err := s.s.Open(s.Context(), shard, from)
	s.must(err)
	return r
}

// read reads n records, or all if n is negative.
func (s *suite) read(r archive.Reader, n int) (records []archive.Record) {
	s.Helper()
	for {
		page, err := r.Next(s.Context())
		if errors.Is(err, archive.ErrUnavailable) {
			continue
		}
		s.must(err)
		records = append(records, page.Records...)
		if n < 0 && page.End || n >= 0 && len(records) >= n {
			return records
		}
		if page.End {
			s.Fatalf("the shard ends after %d entries, want %d", len(records), n)
		}
	}
}

func numbersOf(records []archive.Record) (numbers []archive.Number) {
	for _, e := range records {
		numbers = append(numbers, e.Number)
	}
	return numbers
}

func (s *suite) same(what string, want, got []archive.Number) {
	s.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		s.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func (s *suite) identity() {
	id, kept, err := s.s.Identify(s.Context())
	again, _, err2 := s.s.Identify(s.Context())
	if err != nil || err2 != nil || id != again || id.ARN == "" || id.Created.IsZero() || kept < time.Hour {
		s.Errorf("it is %+v, %v, then %+v, %v; keeps %s", id, err, again, err2, kept)
	}
}

func (s *suite) shards() {
	all, err := s.s.Shards(s.Context())
	if err != nil || len(all) != 2 || all[0].ID == all[1].ID {
		s.Fatalf("%+v, %v: want two shards", all, err)
	}
	for _, one := range all {
		if one.ID == "" || one.First == "" || one.Last != "" || len(one.Parents) != 0 {
			s.Errorf("a new shard is %+v", one)
		}
	}
}

func (s *suite) content() {
	ids := s.open()
	numbers, others := s.fill(ids[0], 10), s.fill(ids[1], 1)
	records := s.read(s.reader(ids[0], archive.Position{}), 10)
	s.same("numbers", numbers, numbersOf(records))
	s.same("numbers of the other shard", others, numbersOf(s.read(s.reader(ids[1], archive.Position{}), 1)))
	for i, e := range records {
		if i > 0 && records[i-1].Number.Compare(e.Number) >= 0 {
			s.Errorf("%s follows %s", e.Number, records[i-1].Number)
		}
		want := []string{fmt.Sprintf("%s %d", ids[0], i)}
		if i%3 == 1 {
			want = append(want, "", "\xff")
		}
		var got []string
		for j, r := range e.UserRecords {
			if single := len(e.UserRecords) == 1; r.Sub != j && !(single && r.Sub == -1) || single && r.Sub != -1 ||
				r.Number != e.Number || !r.Arrival.Equal(e.Arrival) || r.PartitionKey != fmt.Sprint("key ", i) {
				s.Errorf("record %d of entry %d is %+v", j, i, r)
			}
			got = append(got, string(r.Data))
		}
		if diff := cmp.Diff(want, got); diff != "" || e.Malformed != nil || e.Arrival.Location() != time.UTC || e.Arrival.Year() < 2020 {
			s.Errorf("entry %d is %+v (-want +got):\n%s", i, e, diff)
		}
	}
}

func (s *suite) atEntry() {
	shard := s.open()[0]
	numbers := s.fill(shard, 4)
	for i := range numbers {
		r := s.reader(shard, archive.Position{At: numbers[i]})
		s.same(fmt.Sprint("from the entry ", i), numbers[i:], numbersOf(s.read(r, len(numbers)-i)))
	}
}

func (s *suite) atTime() {
	shard := s.open()[0]
	s.fill(shard, 4)
	records := s.read(s.reader(shard, archive.Position{}), 4)
	then := records[2].Arrival
	first := slices.IndexFunc(records, func(e archive.Record) bool { return !e.Arrival.Before(then) })
	r := s.reader(shard, archive.Position{Time: then})
	s.same("from a time on", numbersOf(records[first:]), numbersOf(s.read(r, len(records)-first)))
}

func (s *suite) throttled() {
	shard := s.open()[0]
	r := s.reader(shard, archive.Position{})
	numbers := s.fill(shard, 2)
	s.Throttle(3)
	s.same("in spite of throttling", numbers, numbersOf(s.read(r, 2)))
}

func (s *suite) expired() {
	shard := s.open()[0]
	r := s.reader(shard, archive.Position{})
	s.Expire()
	var want, got []archive.Number
	for range 3 {
		want = append(want, s.fill(shard, 2)...)
		got = append(got, numbersOf(s.read(r, 2))...)
		s.Expire()
	}
	s.same("across three expired read positions", want, got)
}

func (s *suite) goneAtStart() {
	shard := s.open()[0]
	numbers := s.fill(shard, 3)
	s.Trim(shard, numbers[0])
	if _, err := s.s.Open(s.Context(), shard, archive.Position{At: numbers[0]}); !errors.Is(err, archive.ErrGone) {
		s.Errorf("Open at an expired record = %v, want ErrGone", err)
	}
	s.same("remaining records", numbers[1:], numbersOf(s.read(s.reader(shard, archive.Position{}), 2)))
	s.Trim(shard, numbers[2])
	if _, err := s.s.Open(s.Context(), shard, archive.Position{At: numbers[2]}); !errors.Is(err, archive.ErrGone) {
		s.Errorf("Open after all records expired = %v, want ErrGone", err)
	}
}

// goneWhileReading checks that a reader does not skip records that expired while it had no read
// position.
func (s *suite) goneWhileReading() {
	shard := s.open()[0]
	r := s.reader(shard, archive.Position{})
	s.fill(shard, 1)
	s.read(r, 1)
	missed := s.fill(shard, 2)
	s.Trim(shard, missed[0])
	s.Expire()
	s.checkGone(r)
}

func (s *suite) goneInClosedShard() {
	shard := s.open()[0]
	r := s.reader(shard, archive.Position{})
	s.fill(shard, 1)
	s.read(r, 1)
	missed := s.fill(shard, 2)
	s.must(s.Split(s.Context(), shard))
	s.Trim(shard, missed[1])
	s.Expire()
	s.checkGone(r)
}

func (s *suite) checkGone(r archive.Reader) {
	s.Helper()
	for range 2 {
		for {
			page, err := r.Next(s.Context())
			if err == nil && len(page.Records) == 0 && !page.End {
				continue
			}
			if !errors.Is(err, archive.ErrGone) {
				s.Errorf("read %v, end %v, %v, want ErrGone", numbersOf(page.Records), page.End, err)
			}
			break
		}
	}
}

func (s *suite) split() {
	shard := s.open()[0]
	before := s.fill(shard, 3)
	s.must(s.Split(s.Context(), shard))
	s.checkReshard([]string{shard}, 2, before)
}

func (s *suite) merge() {
	parents := s.open()
	before := s.fill(parents[0], 3)
	s.must(s.Merge(s.Context(), parents[0], parents[1]))
	s.checkReshard(parents, 1, before)
}

func (s *suite) checkReshard(parents []string, children int, before []archive.Number) {
	all, err := s.s.Shards(s.Context())
	s.must(err)
	v, ok := s.Producer.(InexactEnds)
	vague := ok && v.HasInexactEnds()
	for _, one := range all {
		switch {
		case slices.Contains(parents, one.ID):
			if one.Last == "" || !vague && one.ID == parents[0] && one.Last.Compare(before[len(before)-1]) < 0 {
				s.Errorf("the closed shard is %+v, and holds %v", one, before)
			}
		case len(one.Parents) > 0:
			children--
			got := slices.Sorted(slices.Values(one.Parents))
			if diff := cmp.Diff(slices.Sorted(slices.Values(parents)), got); diff != "" || one.Last != "" {
				s.Errorf("%+v (-want +got):\n%s", one, diff)
			}
			r := s.reader(one.ID, archive.Position{})
			s.same("of a child", s.fill(one.ID, 2), numbersOf(s.read(r, 2)))
		}
	}
	if children != 0 {
		s.Errorf("%d children too few in %+v", children, all)
	}
	r := s.reader(parents[0], archive.Position{})
	s.same("of the closed shard", before, numbersOf(s.read(r, -1)))
	if page, err := r.Next(s.Context()); err != nil || !page.End || len(page.Records) > 0 {
		s.Errorf("Next after the end of the closed shard = %+v, %v, want no records, and End", page, err)
	}
}

func (s *suite) missing() {
	m := s.Missing()
	_, _, identify := m.Identify(s.Context())
	_, shards := m.Shards(s.Context())
	_, open := m.Open(s.Context(), s.open()[0], archive.Position{})
	_, shard := s.s.Open(s.Context(), "shardId-000000009999", archive.Position{})
	for what, err := range map[string]error{"Identify": identify, "Shards": shards, "Open": open, "Open of another shard": shard} {
		if !errors.Is(err, archive.ErrNoStream) {
			s.Errorf("%s: %v, want ErrNoStream", what, err)
		}
	}
}

func (s *suite) cancelled() {
	r := s.reader(s.open()[0], archive.Position{})
	s.Throttle(1 << 30)
	ctx, cancel := context.WithTimeout(s.Context(), 100*time.Millisecond)
	defer cancel()
	for {
		_, err := r.Next(ctx)
		if errors.Is(err, ctx.Err()) && ctx.Err() != nil {
			return
		}
		if !errors.Is(err, archive.ErrUnavailable) {
			s.Fatalf("throttled, then cancelled: %v", err)
		}
	}
}
