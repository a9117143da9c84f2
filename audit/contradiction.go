package audit

import (
	"context"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/ledger"
)

const (
	listedNotFound = "listed, but HEAD returns not found"
	foundNotListed = "not listed, but HEAD finds it"
)

// findContradictions counts the candidates for which listing and HEAD disagree twice. It skips
// inventory reports and listings of versions.
func (w *walk) findContradictions(ctx context.Context, open []candidate, heads []headResult) error {
	if !w.AsOf.IsZero() || w.Pipeline.EachVersion {
		return nil
	}
	var doubtful []candidate
	for i := range open {
		if !heads[i].inaccessible && heads[i].Exists != open[i].listed {
			doubtful = append(doubtful, open[i])
		}
	}
	errs, confirmed := make([]error, len(doubtful)), make([]bool, len(doubtful))
	w.Each(len(doubtful), func(i int) { confirmed[i], errs[i] = w.contradicts(ctx, &doubtful[i]) })
	w.counts.Inspected += int64(len(doubtful))
	for i := range doubtful {
		if errs[i] != nil {
			return errs[i]
		}
		if !confirmed[i] {
			continue
		}
		w.counts.Contradicted++
		if w.Contradiction != nil {
			what := foundNotListed
			if doubtful[i].listed {
				what = listedNotFound
			}
			w.Contradiction(doubtful[i].key, what)
		}
	}
	return nil
}

// contradicts repeats both requests. It ignores objects modified within the settle window.
func (w *walk) contradicts(ctx context.Context, c *candidate) (bool, error) {
	listed, err := w.listObject(ctx, c.key)
	if err != nil || (listed != nil) != c.listed {
		return false, err
	}
	seen := w.head(ctx, c.key.Object())
	if seen.err != nil || seen.inaccessible || seen.Exists == c.listed {
		return false, seen.err
	}
	modified := seen.Identity.ModTime
	if c.listed {
		modified = listed.ModTime
	}
	return modified.Before(w.settleCutoff(w.Now())), nil
}

func (w *walk) listObject(ctx context.Context, key ledger.RowKey) (*bucket.Info, error) {
	for info, err := range w.Listing.List(ctx, key.Bucket, key.Key, "") {
		if err != nil && !info.Unlistable(err) {
			return nil, err
		}
		if info.Key == key.Key {
			return &info, nil
		}
		return nil, nil // the exact key comes first
	}
	return nil, nil
}
