package ledger

import (
	"context"
	"time"

	"github.com/pawlhq/pawl/store"
)

// Unsettled summarizes the rows of a pipeline whose effect is not committed. It excludes dead and
// unreadable rows, because no worker will process them.
type Unsettled struct {
	ByState map[State]int
	// Oldest is the oldest event time of these rows. Zero: there are none.
	Oldest time.Time
	// Truncated reports that there are more rows than the limit, so that the counts are too low.
	Truncated bool
}

// Unsettled reads at most limit due rows of a pipeline, in pages. It does not scan the settled rows.
func (s *Rows) Unsettled(ctx context.Context, pipeline string, now time.Time, limit int) (Unsettled, error) {
	u := Unsettled{ByState: map[State]int{}}
	r := store.DueRange{Space: rowSpace + pipeline, Before: now.AddDate(10, 0, 0)}
	for read := 0; ; {
		r.Limit = min(1000, limit-read)
		if r.Limit == 0 {
			u.Truncated = true
			return u, nil
		}
		records, err := s.records.Due(ctx, r)
		if err != nil {
			return u, err
		}
		rows, err := rowsOf(records)
		if err != nil {
			return u, err
		}
		for i := range rows {
			u.add(&rows[i], now)
		}
		if len(records) < r.Limit {
			return u, nil
		}
		read += len(records)
		last := &records[len(records)-1]
		r.After = store.Place{Due: last.Due, Name: last.Name}
	}
}

func (u *Unsettled) add(row *Row, now time.Time) {
	if row.Unreadable != nil || row.Dead || row.Settled() && !row.Held() {
		return
	}
	u.ByState[row.State(now)]++
	at := row.EventTime
	if at.IsZero() {
		at = row.CreatedAt
	}
	if u.Oldest.IsZero() || at.Before(u.Oldest) {
		u.Oldest = at
	}
}
