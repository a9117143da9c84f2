package inventory

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/pawlhq/pawl/bucket"
)

type entry struct {
	key, etag string
	modified  int64 // Unix milliseconds
	size      int64
}

func (e entry) info() bucket.Info {
	return bucket.Info{Key: e.key, ETag: e.etag, ModTime: time.UnixMilli(e.modified).UTC(), Size: e.size}
}

// compare orders entries by key, then from the newest to the oldest.
func (e entry) compare(f entry) int {
	return cmp.Or(cmp.Compare(e.key, f.key), cmp.Compare(f.modified, e.modified))
}

const (
	// maxBatchBytes is approximate.
	maxBatchBytes = 12 << 20
	entryOverhead = 48
	// The sorter merges this many runs of a level into one run of the next level. 64 batches are
	// five million rows, and 64 such runs are 350 million rows.
	runsPerLevel = 64
)

type sorter struct {
	dir   string
	room  int // of a batch, in bytes
	fanIn int // see runsPerLevel
	rows  int64
	batch []entry
	bytes int
	runs  []*run // in order; levels never rise
	last  *runWriter
}

func (s *sorter) add(ctx context.Context, e entry) error {
	s.batch = append(s.batch, e)
	s.bytes += len(e.key) + len(e.etag) + entryOverhead
	s.rows++
	if s.bytes < s.room {
		return nil
	}
	return s.flush(ctx)
}

// flush appends the sorted batch to the last run if all its keys are greater. Otherwise it starts
// a new run.
func (s *sorter) flush(ctx context.Context) error {
	if len(s.batch) == 0 {
		return nil
	}
	slices.SortFunc(s.batch, entry.compare)
	if s.last != nil && s.batch[0].key <= s.last.key {
		if err := s.closeRun(ctx); err != nil {
			return err
		}
	}
	if s.last == nil {
		w, err := newRun(s.dir)
		if err != nil {
			return err
		}
		s.last = w
		s.runs = append(s.runs, w.run)
	}
	for _, e := range s.batch {
		if err := s.last.write(e); err != nil {
			return err
		}
	}
	s.batch, s.bytes = s.batch[:0], 0
	return nil
}

func (s *sorter) closeRun(ctx context.Context) error {
	err := s.last.flush()
	s.last = nil
	for err == nil && len(s.runs) >= s.fanIn && s.runs[len(s.runs)-s.fanIn].level == s.runs[len(s.runs)-1].level {
		err = s.mergeRuns(ctx, len(s.runs)-s.fanIn)
	}
	return err
}

func (s *sorter) mergeRuns(ctx context.Context, i int) error {
	w, err := newRun(s.dir)
	if err != nil {
		return err
	}
	w.level = s.runs[i].level + 1
	for e, err := range merge(ctx, s.runs[i:], "") {
		if err == nil {
			err = w.write(e)
		}
		if err != nil {
			_ = w.f.Close()
			return err
		}
	}
	for _, r := range s.runs[i:] {
		_ = r.f.Close()
	}
	s.runs = append(s.runs[:i], w.run)
	return w.flush()
}

func (s *sorter) finish(ctx context.Context) error {
	err := s.flush(ctx)
	s.batch = nil
	if err == nil && s.last != nil {
		err = s.closeRun(ctx)
	}
	return err
}
