package ledger

import (
	"context"
	"fmt"
	"time"
)

// Traits says where a store differs from the strictest reading of [Store], and
// how much it takes at a time. The zero Traits is the strictest store. The suite
// in ledger/ledgertest holds a store to what it declares.
type Traits struct {
	// Volatile: the store may forget when its process ends. A message must not
	// be acknowledged on its word.
	Volatile bool
	// Partial: an Outcome may have an Err of its own. Without it an answer is
	// an answer to all changes of the batch.
	Partial bool
	// DueLag is how old the picture is that Due answers from, at most. A row that
	// was written since may be missing, or be there as it was before.
	DueLag time.Duration
	// DueUnordered: Due returns any of the rows that are due, in any order.
	DueUnordered bool
	// ScanUnordered: Scan yields rows in any order; Range.After still leaves out
	// the keys up to it. Such a store is a [PipelineLister].
	ScanUnordered bool

	// Transactions: a handler may commit its effect and its task's completion
	// together, in a transaction of the store's database: see [Completion].
	Transactions bool

	// Batch is how many changes one Swap takes; 0: [DefaultBatch].
	Batch int
	// Swaps is how many calls of Swap are worth having under way at once; 0: 2.
	Swaps int
	// History is how many bytes the history of a row may take, in its What and
	// Note and 64 for the rest of each entry; 0: all [MaxHistory] entries.
	History int
}

// DefaultBatch is how many changes one Swap takes, unless the store's Traits say
// otherwise.
const DefaultBatch = 1000

// Declarer is implemented by stores whose traits are not all zero.
type Declarer interface {
	Traits() Traits
}

// TraitsOf returns the traits of a store, with defaults in place of zero limits.
func TraitsOf(s Store) Traits {
	var t Traits
	if d, ok := s.(Declarer); ok {
		t = d.Traits()
	}
	if t.Batch == 0 {
		t.Batch = DefaultBatch
	}
	if t.Swaps == 0 {
		t.Swaps = 2
	}
	return t
}

// PipelineLister is implemented by stores that can name the pipelines they have
// rows of. A store whose Scan is ordered needs not: see [Pipelines].
type PipelineLister interface {
	// Pipelines returns the names, each once, sorted. It may name a pipeline whose
	// rows are all gone.
	Pipelines(ctx context.Context) ([]string, error)
}

// Pipelines returns the names of the pipelines that a store has rows of, sorted.
// Where the store is no [PipelineLister] it seeks from one to the next by Scan.
func Pipelines(ctx context.Context, s Store) (names []string, err error) {
	if l, ok := s.(PipelineLister); ok {
		return l.Pipelines(ctx)
	}
	if TraitsOf(s).ScanUnordered {
		return nil, fmt.Errorf("ledger: %T scans in no order, and must be a PipelineLister to name its pipelines", s)
	}
	for after := (RowKey{}); ; {
		name, ok, err := firstPipeline(ctx, s, after)
		if err != nil || !ok {
			return names, err
		}
		names = append(names, name)
		after = RowKey{Pipeline: name, Bucket: beyondBuckets}
	}
}

// beyondBuckets is larger than the name of any bucket.
const beyondBuckets = "\xff\xff\xff\xff"

func firstPipeline(ctx context.Context, s Store, after RowKey) (name string, ok bool, err error) {
	for row, err := range s.Scan(ctx, Range{After: after}) {
		return row.Pipeline, err == nil, err
	}
	return "", false, nil
}
