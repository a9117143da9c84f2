package audit

import (
	"context"
	"errors"
	"time"

	"github.com/pawlhq/pawl/cell"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
)

// Purged has the counts of a purge.
type Purged struct {
	Examined int `json:"examined"`
	Dropped  int `json:"dropped"` // in a dry run: rows that would be dropped
	Changed  int `json:"changed"` // skipped, because they changed meanwhile
}

// Plus returns the sum of two counts.
func (p Purged) Plus(q Purged) Purged {
	return Purged{p.Examined + q.Examined, p.Dropped + q.Dropped, p.Changed + q.Changed}
}

const purgePage = 500

// Purge drops the rows of a pipeline that [ledger.Row.Purgeable] permits under p. It skips rows
// that workers change meanwhile. If a notification arrives after its row was dropped, Pawl
// processes it as new: p.RowRetention must exceed the largest delay.
//
// Before Purge drops rows of existing objects, it raises the purge watermark, which requires a
// ledger with registers. It calls progress, unless nil, after each page.
func Purge(ctx context.Context, s ledger.Store, pipeline string, p *ledger.Policy, dryRun bool, progress func(Purged)) (done Purged, err error) {
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
		if progress != nil {
			progress(done)
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

// purgeable reports whether the page includes rows of existing objects. Only the last page may be
// short. The scan ends before the caller writes.
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

// watermarkRegister is followed by the pipeline's name.
const watermarkRegister = "audit/horizon/"

// readPurgeWatermark returns the zero time if no row of an existing object was dropped. Callers
// must load rows first, because a purge raises the watermark before it drops rows.
func readPurgeWatermark(ctx context.Context, r ledger.Registers, pipeline string) (at time.Time, err error) {
	k := &jsonRegister{Cell: ledger.Cell(r, watermarkRegister+pipeline)}
	var w watermark
	err = k.read(ctx, &w)
	return w.At, err
}

func raisePurgeWatermark(ctx context.Context, s ledger.Store, pipeline string, to time.Time) error {
	r, ok := s.(ledger.Registers)
	if !ok {
		return errors.New("purge of settled rows: this ledger has no registers for the purge watermark: use a ledger in SQLite, PostgreSQL or DynamoDB")
	}
	for {
		k := &jsonRegister{Cell: ledger.Cell(r, watermarkRegister+pipeline)}
		var w watermark
		if err := k.read(ctx, &w); err != nil || !w.At.Before(to) {
			return err
		}
		w.At = to
		if err := k.write(ctx, &w); !errors.Is(err, cell.ErrPrecondition) {
			return err
		}
	}
}
