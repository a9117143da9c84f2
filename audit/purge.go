package audit

import (
	"context"
	"errors"
	"time"

	"github.com/pawlhq/pawl/cell"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
)

// Purged counts what Purge did, in rows.
type Purged struct {
	Examined int `json:"examined"` // rows that were looked at
	Dropped  int `json:"dropped"`  // with dryRun: that would be
	Changed  int `json:"changed"`  // left alone, since they changed meanwhile
}

// Plus returns the sum of two counts.
func (p Purged) Plus(q Purged) Purged {
	return Purged{p.Examined + q.Examined, p.Dropped + q.Dropped, p.Changed + q.Changed}
}

// purgePage is how many rows are dropped at a time.
const purgePage = 500

// Purge drops the rows of a pipeline that [ledger.Row.Forget] gives up under p. It
// works beside workers: a row that changes meanwhile stays. An event of an object
// that comes after its row is gone counts as the first ever; so p.RowRetention must
// exceed the largest delay of a notification.
//
// Before it drops rows of objects that exist, it has the ledger remember how
// far it goes, for audits; the ledger must have registers for that.
//
// Purge calls tell, unless it is nil, after each page. With dryRun it only counts.
func Purge(ctx context.Context, s ledger.Store, pipeline string, p *ledger.Policy, dryRun bool, tell func(Purged)) (done Purged, err error) {
	l, now := ledger.New(s), time.Now().UTC()
	raised := false
	for after := (ledger.RowKey{}); ; {
		changes, exist, err := purgeable(ctx, s, ledger.Range{Pipeline: pipeline, After: after}, p, now, &done)
		if err != nil {
			return done, err
		}
		last := len(changes) < purgePage
		if exist && !raised && !dryRun {
			if err := raisePurgeWatermark(ctx, s, pipeline, now.Add(p.Skew-p.RowRetention)); err != nil {
				return done, err
			}
			raised = true
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

// purgeable returns the next page of deletions, and whether objects that exist are
// among them. The last page is not full. The scan has ended before anything is
// written.
func purgeable(ctx context.Context, s ledger.Store, r ledger.Range, p *ledger.Policy, now time.Time, done *Purged) (page []ledger.Change, exist bool, err error) {
	for row, err := range s.Scan(ctx, r) {
		if err != nil {
			return nil, false, err
		}
		done.Examined++
		if !row.Purgeable(p, now) {
			continue
		}
		exist = exist || row.Have.Kind != event.Removed
		page = append(page, ledger.Change{Key: row.RowKey, Expect: row.Nonce})
		if len(page) == purgePage {
			break
		}
	}
	return page, exist, nil
}

// watermarkRegister and a pipeline's name make the name of the register that keeps its
// horizon.
const watermarkRegister = "audit/horizon/"

// readPurgeWatermark returns how far purges of a pipeline's rows have gone: those of objects
// that were changed before may be gone although the objects exist. The zero time says
// that none is. It is read after a row is found missing: it is raised before rows go.
func readPurgeWatermark(ctx context.Context, r ledger.Registers, pipeline string) (at time.Time, err error) {
	k := &jsonRegister{Cell: ledger.Cell(r, watermarkRegister+pipeline)}
	err = k.read(ctx, &at)
	return at, err
}

// raisePurgeWatermark has the ledger remember that rows go that settled before a time. It
// only ever rises.
func raisePurgeWatermark(ctx context.Context, s ledger.Store, pipeline string, to time.Time) error {
	r, ok := s.(ledger.Registers)
	if !ok {
		return errors.New("purge of settled rows: this ledger has no registers for the purge watermark: use a ledger in SQLite, PostgreSQL or DynamoDB")
	}
	for {
		k := &jsonRegister{Cell: ledger.Cell(r, watermarkRegister+pipeline)}
		var at time.Time
		if err := k.read(ctx, &at); err != nil || !at.Before(to) {
			return err
		}
		if err := k.write(ctx, to); !errors.Is(err, cell.ErrPrecondition) {
			return err
		}
	}
}
