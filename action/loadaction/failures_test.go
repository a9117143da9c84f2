package loadaction_test

import (
	"bytes"
	"context"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/parquet-go/parquet-go"

	"github.com/pawlhq/pawl"
)

func TestFailures(t *testing.T) {
	b := newLoadTest(t, exportsDDL)
	for _, tc := range []struct {
		name string
		test func(*testing.T, *loadTest)
	}{{"damaged", testDamaged}, {"bomb", testParquetBomb}, {"locked", testLocked}, {"failover", testFailover}, {"doubtful", testFailuresOfFileOrDatabase}} {
		t.Run(tc.name, func(t *testing.T) {
			b.T, b.cfg.Format, b.cfg.MaxBytes = t, "csv", 0
			b.retry = pawl.Retry{Attempts: 1, Base: time.Millisecond, Max: 100 * time.Millisecond}
			b.exec("TRUNCATE exports")
			tc.test(t, b)
		})
	}
}

func (b *loadTest) exec(sql string) {
	b.Helper()
	if _, err := b.store.Pool().Exec(b.Context(), sql, pgx.QueryExecModeSimpleProtocol); err != nil {
		b.Fatal(err)
	}
}

// If the file may be the cause, the attempt counts. If another file may remove the cause, the
// failure is not permanent.
func testFailuresOfFileOrDatabase(t *testing.T, b *loadTest) {
	b.exec(` CREATE INDEX ON exports (name); CREATE UNIQUE INDEX ON exports (n);
		CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			IF NEW.name = 'unknown' THEN RAISE EXCEPTION 'no such customer'; END IF;
			IF NEW.name = 'slow' THEN RAISE EXCEPTION 'canceling statement' USING ERRCODE = '57014'; END IF;
			RETURN NEW;
		END $$; CREATE TRIGGER f BEFORE INSERT ON exports FOR EACH ROW EXECUTE FUNCTION f()`)
	b.retry.Attempts = 10
	if row := b.put("other", []byte("n\n1\n")); !row.Settled() {
		t.Fatalf("the first file is not loaded: %q", row.LastError)
	}
	b.retry.Attempts = 2
	random := rand.New(rand.NewPCG(1, 2))
	incompressible := make([]byte, 6000)
	for i := range incompressible {
		incompressible[i] = 'a' + byte(random.IntN(26))
	}
	for _, tc := range []struct{ body, want string }{
		{"name\nunknown\n", `line 2: no such customer`},
		{"name\nslow\n", `line 2: canceling statement`},
		{"name\n" + string(incompressible) + "\n", `index row size`},
		// not the previous body: equal bodies within one second are one version
		{"n,name\n1,twice\n", `line 2: duplicate key value violates unique constraint`},
	} {
		row := b.put("x", []byte(tc.body))
		if !row.Dead || row.Attempts != 2 || !strings.Contains(row.LastError, tc.want) {
			t.Errorf("%.20q: dead %v after %d attempts, %q: want 2, and %q", tc.body, row.Dead, row.Attempts, row.LastError, tc.want)
		}
	}
}

// Many rows share one value.
func testParquetBomb(t *testing.T, b *loadTest) {
	b.cfg.Format, b.cfg.MaxBytes = "parquet", 1<<20
	type row struct {
		Name string `parquet:"name,dict"`
	}
	rows := make([]row, 4000)
	for i := range rows {
		rows[i].Name = strings.Repeat("x", 1000)
	}
	for n, wantDead := range map[int]bool{1000: false, 4000: true} {
		var file bytes.Buffer
		if err := parquet.Write(&file, rows[:n]); err != nil {
			t.Fatal(err)
		}
		r := b.put("x", file.Bytes())
		if r.Dead != wantDead || r.Dead && !strings.Contains(r.LastError, "the file is larger than 1048576 bytes, unpacked: split it, or raise max_bytes") {
			t.Errorf("%d rows in %d bytes: dead %v, %q", n, file.Len(), r.Dead, r.LastError)
		}
	}
}

// The Parquet reader panics on these files.
func testDamaged(t *testing.T, b *loadTest) {
	b.cfg.Format = "parquet"
	type row struct {
		Name string `parquet:"name,dict"`
		N    *int64 `parquet:"n,optional"`
	}
	var rows []row
	for i := range 300 {
		n := int64(i)
		rows = append(rows, row{strings.Repeat("ab", i%7), &n})
	}
	var file bytes.Buffer
	if err := parquet.Write(&file, rows); err != nil {
		t.Fatal(err)
	}
	for _, seed := range []uint64{1003, 1393, 5781} {
		random := rand.New(rand.NewPCG(seed, 1))
		damaged := bytes.Clone(file.Bytes())
		for range 1 + random.IntN(3) {
			damaged[random.IntN(len(damaged))] = byte(random.Uint32())
		}
		if row := b.put("x", damaged); !row.Dead || !strings.Contains(row.LastError, "damaged") {
			t.Errorf("seed %d: dead %v, %q", seed, row.Dead, row.LastError)
		}
	}
}

func testLocked(t *testing.T, b *loadTest) {
	b.put("x", []byte("n\n1\n"))
	tx, err := b.store.Pool().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "SELECT FROM exports FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for said := false; !said; <-tick.C {
			err := tx.QueryRow(t.Context(), "SELECT body LIKE '%locked by another session%' FROM pawl.record WHERE space = 'row/load'").Scan(&said)
			if err != nil {
				t.Error(err)
				return
			}
		}
	})
	if row := b.put("x", []byte("n\n2\n")); !row.Settled() {
		t.Error(row.LastError)
	}
	b.want("(,2,,s3://in/x)")
}

func testFailover(t *testing.T, b *loadTest) {
	operator, err := b.store.Pool().Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer operator.Release()
	readOnly := func(onoff string) {
		if _, err := operator.Exec(t.Context(), "ALTER DATABASE postgres SET default_transaction_read_only = "+onoff); err != nil {
			t.Fatal(err)
		}
	}
	readOnly("on")
	b.store.Pool().Reset()
	if err := b.store.Pool().Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	readOnly("off")
	if row := b.put("x", []byte("n\n1\n")); !row.Settled() {
		t.Error(row.LastError)
	}
	b.want("(,1,,s3://in/x)")
}
