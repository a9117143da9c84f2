package ledger

import (
	"context"
	"slices"
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
	var after RowKey
	var due time.Time
	for read := 0; ; {
		page := min(1000, limit-read)
		if page == 0 {
			u.Truncated = true
			return u, nil
		}
		rows, dues, err := s.DueAfter(ctx, pipeline, false, after, due, page)
		if err != nil {
			return u, err
		}
		for i := range rows {
			u.add(&rows[i], now)
		}
		if len(rows) < page {
			return u, nil
		}
		read += len(rows)
		after, due = rows[len(rows)-1].RowKey, dues[len(dues)-1]
	}
}

// DueAfter returns at most limit rows of a pipeline that are due now or later, or its dead rows, and their due
// times, in the order of these times. It begins after the row with the given key and time; the zero RowKey is
// the beginning. The index may be behind the rows.
func (s *Rows) DueAfter(ctx context.Context, pipeline string, dead bool, after RowKey, due time.Time, limit int) (rows []Row, dues []time.Time, err error) {
	r := store.DueRange{Space: rowSpace + pipeline, Before: time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC), Limit: limit}
	if dead {
		r.After.Due, r.Before = dueNever.Add(-time.Millisecond), dueNever
	}
	if after != (RowKey{}) {
		r.After = store.Place{Due: due, Name: recordKey(after).Name}
	}
	records, err := s.records.Due(ctx, r)
	if err != nil {
		return nil, nil, err
	}
	for i := range records {
		dues = append(dues, records[i].Due)
	}
	rows, err = rowsOf(records)
	return rows, dues, err
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

// Dead returns at most limit dead rows of a pipeline. It does not scan the other rows.
func (s *Rows) Dead(ctx context.Context, pipeline string, limit int) ([]Row, error) {
	rows, _, err := s.DueAfter(ctx, pipeline, true, RowKey{}, time.Time{}, limit)
	return slices.DeleteFunc(rows, func(r Row) bool { return !r.Dead }), err
}
