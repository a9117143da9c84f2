package pawl_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/store"
	pawlsqlite "github.com/pawlhq/pawl/store/sqlite"
)

// Rows of a newer Pawl with unknown values are due before 10,000 other rows.
func TestRowsOfNewerPawlVersion(t *testing.T) {
	const rows, every = rowsAmongNewer, 250
	path := filepath.Join(t.TempDir(), "pawl.db")
	records, err := pawlsqlite.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := records.Close(); err != nil {
			t.Error(err)
		}
	}()
	fillLedger(t, ledger.NewRows(records), rows)
	makeUnreadable(t, path, every)

	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	var handled atomic.Int64
	var log bytes.Buffer
	p, err := pawl.New(pawl.Config{
		Ledger: records, SweepInterval: 10 * time.Millisecond, Logger: slog.New(slog.NewTextHandler(&log, nil)),
		Pipelines: []pawl.Pipeline{{Name: "p", Match: pawl.Match{Bucket: "b"}, Order: pawl.EventOrder, Handler: pawl.HandlerFunc(func(context.Context, *pawl.Task) error {
			if handled.Add(1) == rows-rows/every {
				cancel()
			}
			return nil
		})}},
	})
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if err := p.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if s := p.Stats(); s.Completed != rows-rows/every || s.Died != 0 {
		t.Errorf("%+v: want %d completed", s, rows-rows/every)
	}
	if n := strings.Count(log.String(), "--state unreadable"); n < 1 || n > 10+int(time.Since(began)/(10*time.Second)) {
		t.Errorf("%d lines in the log about %d rows that cannot be read: want a few", n, rows/every)
	}
	unchanged := 0
	for r, err := range records.Scan(t.Context(), store.Range{Space: "row/p"}) {
		if err != nil {
			t.Fatal(err)
		}
		unchanged += strings.Count(r.Body, `"v":"2.0"`)
	}
	if unchanged != rows/every/4 {
		t.Errorf("%d rows have the version 2.0, want all %d", unchanged, rows/every/4)
	}
}

func fillLedger(t *testing.T, l ledger.Store, rows int) {
	t.Helper()
	var changes []ledger.Change
	for i := range rows {
		seq, err := event.ParseSequencer("01")
		if err != nil {
			t.Fatal(err)
		}
		r := &ledger.Row{
			RowKey: ledger.RowKey{Pipeline: "p", Bucket: "b", Key: fmt.Sprintf("%05d", i)}, Nonce: ledger.Nonce{1, byte(i), byte(i >> 8)},
			Want: ledger.Version{Sequencer: seq, Kind: event.Created}, UpdatedAt: time.Unix(1, 0).UTC(),
		}
		changes = append(changes, ledger.Change{Key: r.RowKey, Row: r})
	}
	if _, err := ledger.New(l).Swap(t.Context(), changes); err != nil {
		t.Fatal(err)
	}
}

// Every n-th row becomes unreadable, and due before all others.
func makeUnreadable(t *testing.T, path string, every int) {
	t.Helper()
	conn, err := sqlite.OpenConn(path)
	if err != nil {
		t.Fatal(err)
	}
	for i, edit := range []string{
		`'"v":"1.0"', '"v":"1.0","kind":"moved"'`, `'"v":"1.0"', '"v":"1.0","gen":"zz"'`, `'"v":"1.0"', '"doubt":"perhaps","v":"1.0"'`,
		`'"v":"1.0"', '"v":"2.0"'`,
	} {
		query := fmt.Sprintf(`UPDATE record SET body = replace(body, %s), due = due - 1 WHERE rowid %% %d = 0 AND (rowid / %d) %% 4 = %d`, edit, every, every, i)
		if err := sqlitex.ExecuteTransient(conn, query, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
}
