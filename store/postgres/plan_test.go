package postgres

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl/proof/servertest"
	"github.com/pawlhq/pawl/store"
)

func TestPlans(t *testing.T) {
	t.Parallel()
	const records = 50_000
	s := openStore(t, servertest.Postgres(t, "autovacuum=off").URL)
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for space, due := range map[string]any{"due": at, "settled": nil} {
		s.must(t, `INSERT INTO pawl.record SELECT $1, convert_to('in/' || lpad(i::text, 8, '0'), 'UTF8'), gen_random_uuid(), $2, 'body'
			FROM generate_series(1, $3::int) i ORDER BY random()`, []byte(space), due, records)
	}
	for range 2 {
		s.explainPlan(t, "record_due", s.sql.due, dueArgs(store.DueRange{Space: "due", Before: at, Limit: 1000}))
		s.explainPlan(t, "record_due", s.sql.due, dueArgs(store.DueRange{
			Space: "due", After: store.Place{Due: at, Name: "in/00025000"}, Before: at.Add(time.Hour), Limit: 1000,
		}))
		for _, newest := range []bool{false, true} {
			for _, bounds := range [][2]string{{}, {"in/00020000"}, {"", "in/00020000"}, {"in/00010000", "in/00020000"}} {
				sql, args := s.scan(store.Range{Space: "settled", After: bounds[0], Before: bounds[1], Newest: newest, Limit: page})
				s.explainPlan(t, "record_pkey", sql, args)
			}
		}
		s.must(t, "ANALYZE pawl.record")
	}
	seen, after := 0, store.Place{}
	for last := false; !last; {
		page, err := s.Due(t.Context(), store.DueRange{Space: "due", After: after, Before: at, Limit: 1000})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range page {
			if seen++; r.Name != fmt.Sprintf("in/%08d", seen) || !r.Due.Equal(at) {
				t.Fatalf("record %d is %+v", seen, r)
			}
			after = store.Place{Due: r.Due, Name: r.Name}
		}
		last = len(page) < 1000
	}
	if seen != records {
		t.Errorf("%d records of %d", seen, records)
	}
}

func (s *Store) explainPlan(t *testing.T, index, sql string, args []any) {
	t.Helper()
	var lines []string
	q := &pgx.Batch{}
	q.Queue(orderSQL)
	q.Queue("EXPLAIN "+sql, args...).Query(func(rows pgx.Rows) (err error) {
		lines, err = pgx.CollectRows(rows, pgx.RowTo[string])
		return err
	})
	if err := s.pool.SendBatch(t.Context(), q).Close(); err != nil {
		t.Fatal(err)
	}
	plan := strings.Join(lines, "\n")
	if !strings.Contains(plan, " using "+index) || strings.Contains(plan, "Sort") || strings.Contains(plan, "Filter") {
		t.Errorf("%s\n%v\nhas the plan\n%s", sql, args, plan)
	}
}
