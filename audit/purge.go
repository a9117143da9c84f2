package audit

import (
	"context"
	"time"

	"github.com/pawlhq/pawl/ledger"
)

// Purged counts what Purge did, in rows.
type Purged struct {
	Looked  int `json:"looked"`  // rows that were looked at
	Dropped int `json:"dropped"` // with dryRun: that would be
	Changed int `json:"changed"` // left alone, since they changed meanwhile
}

// Plus returns the sum of two counts.
func (p Purged) Plus(q Purged) Purged {
	return Purged{p.Looked + q.Looked, p.Dropped + q.Dropped, p.Changed + q.Changed}
}

// purgePage is how many rows are dropped at a time.
const purgePage = 500

// Purge drops the rows of a pipeline that [ledger.Row.Forget] gives up under p. It
// works beside workers: a row that changes meanwhile stays. An event of an object
// that comes after its row is gone counts as the first ever; so p.Retain must
// exceed the largest delay of a notification.
//
// Purge calls tell, unless it is nil, after each page. With dryRun it only counts.
func Purge(ctx context.Context, s ledger.Store, pipeline string, p *ledger.Policy, dryRun bool, tell func(Purged)) (done Purged, err error) {
	l := ledger.New(s)
	for after := (ledger.RowKey{}); ; {
		changes, last, err := purgeable(ctx, s, ledger.Range{Pipeline: pipeline, After: after}, p, &done)
		if err != nil {
			return done, err
		}
		if len(changes) > 0 && !dryRun {
			outcomes, err := l.Swap(ctx, changes)
			if err != nil {
				return done, err
			}
			for _, o := range outcomes {
				done.count(o.Applied)
			}
		} else {
			done.Dropped += len(changes)
		}
		if tell != nil {
			tell(done)
		}
		if last {
			return done, nil
		}
		after = changes[len(changes)-1].Key
	}
}

func (p *Purged) count(dropped bool) {
	if dropped {
		p.Dropped++
	} else {
		p.Changed++
	}
}

// purgeable returns the next page of deletions, and whether it is the last. The
// scan has ended before anything is written.
func purgeable(ctx context.Context, s ledger.Store, r ledger.Range, p *ledger.Policy, done *Purged) (page []ledger.Change, last bool, err error) {
	now := time.Now().UTC()
	for row, err := range s.Scan(ctx, r) {
		if err != nil {
			return nil, false, err
		}
		done.Looked++
		if !row.Forget(p, now) {
			continue
		}
		page = append(page, ledger.Change{Key: row.RowKey, Expect: row.Nonce})
		if len(page) == purgePage {
			return page, false, nil
		}
	}
	return page, true, nil
}
