package ledger

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/pawlhq/pawl/internal/format"
	"github.com/pawlhq/pawl/store"
)

// Rows keeps rows and registers in a record store.
type Rows struct {
	// IntN returns a random number below n; default [rand.IntN].
	IntN func(n int) int

	records        store.Store
	traits         store.Traits
	knownPipelines sync.Map      // have a pipeline record
	namingPipeline chan struct{} // holds one element while a pipeline record is created
}

var (
	_ Store     = (*Rows)(nil)
	_ Registers = (*Rows)(nil)
	_ Declarer  = (*Rows)(nil)
)

// NewRows returns the rows and registers in a record store. Close also closes the store.
func NewRows(s store.Store) *Rows {
	return &Rows{IntN: rand.IntN, records: s, traits: s.Traits(), namingPipeline: make(chan struct{}, 1)}
}

// Traits returns the record store's traits.
func (s *Rows) Traits() Traits { return s.traits }

// Records returns the record store.
func (s *Rows) Records() store.Store { return s.records }

// Close closes the record store.
func (s *Rows) Close() error { return s.records.Close() }

const (
	rowSpace      = "row/"
	pipelineSpace = "pipeline" // one record for each pipeline that has had a row
)

func recordKey(k RowKey) store.Key {
	name := store.Join(k.Bucket, k.Key)
	if k.VersionID != "" {
		name = store.Join(k.Bucket, k.Key, k.VersionID)
	}
	return store.Key{Space: rowSpace + k.Pipeline, Name: name}
}

// ParseKey returns the row key of a record, or an error if the record is not a row.
func ParseKey(k store.Key) (RowKey, error) {
	parts, err := store.Split(k.Name)
	pipeline, ours := strings.CutPrefix(k.Space, rowSpace)
	if err != nil || !ours || len(parts) < 2 || len(parts) > 3 {
		return RowKey{}, fmt.Errorf("ledger: record %q in space %q does not have the name of a row", k.Name, k.Space)
	}
	row := RowKey{Pipeline: pipeline, Bucket: parts[0], Key: parts[1]}
	if len(parts) == 3 {
		row.VersionID = parts[2]
	}
	return row, nil
}

// dueNever is after every time for which a worker calls Due.
var dueNever = time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)

// recordOf shortens the history until the body has at most limit bytes.
func recordOf(r *Row, limit int) (*store.Record, error) {
	next := &store.Record{Key: recordKey(r.RowKey), Nonce: r.Nonce, Due: r.Due()}
	if r.Dead {
		next.Due = dueNever
	}
	for shorter := *r; ; shorter.History = shorter.History[:len(shorter.History)/2] {
		body, err := Encode(&shorter)
		if err != nil {
			return nil, err
		}
		if next.Body = body; len(body) <= limit || len(shorter.History) == 0 {
			return next, nil
		}
	}
}

func rowOf(r *store.Record) (Row, error) {
	key, err := ParseKey(r.Key)
	if err != nil {
		return Row{}, err
	}
	return Decode(key, r.Nonce, r.Body), nil
}

func rowsOf(records []store.Record) ([]Row, error) {
	rows := make([]Row, len(records))
	for i := range records {
		var err error
		if rows[i], err = rowOf(&records[i]); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

// Swap implements [Store].
func (s *Rows) Swap(ctx context.Context, changes []Change) ([]Outcome, error) {
	out, batch, places := make([]Outcome, len(changes)), make([]store.Change, 0, len(changes)), make([]int, 0, len(changes))
	for i := range changes {
		c := &changes[i]
		change := store.Change{Key: recordKey(c.Key), Expect: c.Expect}
		if c.Row != nil {
			if err := s.ensurePipeline(ctx, c); err != nil {
				return nil, err
			}
			var err error
			if change.Next, err = recordOf(c.Row, s.traits.Body); err != nil {
				out[i].Err = fmt.Errorf("%w: %w", store.ErrRejected, err)
				continue
			}
		}
		batch, places = append(batch, change), append(places, i)
	}
	answers, err := s.records.Swap(ctx, batch)
	if err == nil && len(answers) != len(batch) {
		err = fmt.Errorf("ledger: %d outcomes for %d changes", len(answers), len(batch))
	}
	if err != nil {
		return nil, err
	}
	for i, at := range places {
		a := &answers[i]
		out[at] = Outcome{Applied: a.Applied, Err: a.Err}
		if a.Current != nil {
			row := Decode(changes[at].Key, a.Current.Nonce, a.Current.Body)
			out[at].Current = &row
		}
	}
	return out, nil
}

func (s *Rows) ensurePipeline(ctx context.Context, c *Change) error {
	if !c.Expect.IsZero() {
		return nil
	}
	if _, known := s.knownPipelines.Load(c.Key.Pipeline); known {
		return nil
	}
	// Concurrent inserts wait for one request, instead of sending one each.
	select {
	case s.namingPipeline <- struct{}{}:
		defer func() { <-s.namingPipeline }()
	case <-ctx.Done():
		return fmt.Errorf("%w: create the record of pipeline %s: %w", store.ErrThrottled, c.Key.Pipeline, context.Cause(ctx))
	}
	if _, known := s.knownPipelines.Load(c.Key.Pipeline); known {
		return nil
	}
	key := store.Key{Space: pipelineSpace, Name: c.Key.Pipeline}
	out, err := s.records.Swap(ctx, []store.Change{{Key: key, Next: &store.Record{Key: key, Nonce: store.NewNonce(), Body: `{"v":"` + format.Register + `"}`}}})
	if err == nil {
		err = out[0].Err
	}
	if err == nil {
		s.knownPipelines.Store(c.Key.Pipeline, true)
	}
	return err
}

// Load implements [Store].
func (s *Rows) Load(ctx context.Context, keys []RowKey) ([]Row, error) {
	names := make([]store.Key, len(keys))
	for i, k := range keys {
		names[i] = recordKey(k)
	}
	found, err := s.records.Load(ctx, names)
	if err != nil {
		return nil, err
	}
	return rowsOf(found)
}

// A random choice among many runs makes concurrent sweeps rarely get the same rows.
const dueRuns = 100

// Due returns a random run of the oldest rows if more than limit are due. It halves the offset's
// range if a run is incomplete.
func (s *Rows) Due(ctx context.Context, pipeline string, before time.Time, limit int) ([]Row, error) {
	r := store.DueRange{Space: rowSpace + pipeline, Before: before, Limit: limit}
	oldest, err := s.records.Due(ctx, r)
	if err != nil {
		return nil, err
	}
	if len(oldest) < limit {
		return rowsOf(oldest)
	}
	for most := dueRuns * limit; most > 0; most = r.Skip {
		if r.Skip = s.IntN(most); r.Skip == 0 {
			break
		}
		run, err := s.records.Due(ctx, r)
		if err != nil {
			return nil, err
		}
		if len(run) == limit {
			return rowsOf(run)
		}
	}
	return rowsOf(oldest)
}

// Scan implements [Store].
func (s *Rows) Scan(ctx context.Context, r Range) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		for pipeline, err := range s.pipelines(ctx, &r) {
			if err != nil {
				yield(Row{}, err)
				return
			}
			for row, err := range s.scan(ctx, pipeline, &r) {
				if !yield(row, err) || err != nil {
					return
				}
			}
		}
	}
}

func (s *Rows) pipelines(ctx context.Context, r *Range) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		if r.Pipeline != "" {
			yield(r.Pipeline, nil)
			return
		}
		for named, err := range s.records.Scan(ctx, store.Range{Space: pipelineSpace}) {
			if named.Name < r.After.Pipeline && err == nil {
				continue
			}
			if !yield(named.Name, err) {
				return
			}
		}
	}
}

func (s *Rows) scan(ctx context.Context, pipeline string, r *Range) iter.Seq2[Row, error] {
	in := store.Range{Space: rowSpace + pipeline}
	if r.Bucket != "" {
		prefix := store.Join(r.Bucket, r.Prefix)
		in.After, in.Before = lowerBound(prefix), store.End(prefix)
	}
	switch after := r.After; {
	case after.Pipeline > pipeline:
		return func(func(Row, error) bool) {}
	case after.Pipeline == pipeline && after != (RowKey{}):
		in.After = max(in.After, recordKey(after).Name)
	}
	return func(yield func(Row, error) bool) {
		for record, err := range s.records.Scan(ctx, in) {
			var row Row
			if err == nil {
				row, err = rowOf(&record)
			}
			if err == nil && !r.Match(row.RowKey) {
				continue
			}
			if !yield(row, err) || err != nil {
				return
			}
		}
	}
}

// Range.Match excludes the few names between the bound and prefix.
func lowerBound(prefix string) string {
	last := len(prefix) - 1
	return prefix[:last] + string([]byte{prefix[last] - 1}) + strings.Repeat("\xff", 8)
}

// Pipelines returns the sorted names of all pipelines that have had rows.
func Pipelines(ctx context.Context, s Store) (names []string, err error) {
	for after := (RowKey{}); ; {
		name, ok, err := firstPipeline(ctx, s, after)
		if err != nil || !ok {
			return names, err
		}
		names = append(names, name)
		after = RowKey{Pipeline: name, Bucket: beyondBuckets}
	}
}

const beyondBuckets = "\xff\xff\xff\xff"

func firstPipeline(ctx context.Context, s Store, after RowKey) (name string, ok bool, err error) {
	for row, err := range s.Scan(ctx, Range{After: after}) {
		return row.Pipeline, err == nil, err
	}
	return "", false, nil
}
