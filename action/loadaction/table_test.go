package loadaction_test

import (
	"context"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/action/loadaction"
	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
)

func (b *loadTest) putSettled(key, body string) {
	b.Helper()
	if row := b.put(key, []byte(body)); row.Dead || !row.Settled() {
		b.Fatalf("dead %v, settled %v: %s", row.Dead, row.Settled(), row.LastError)
	}
}

func TestAlteredTable(t *testing.T) {
	b := newLoadTest(t, exportsDDL)
	b.cfg.Format = "ndjson"
	var err error
	if b.handler, err = loadaction.New(t.Context(), b.cfg); err != nil {
		t.Fatal(err)
	}
	b.putSettled("a", `{"name":"a","n":1}`)
	b.exec("ALTER TABLE exports ADD extra jsonb")
	b.putSettled("b", `{"extra":"7"}`)
	b.exec("ALTER TABLE exports DROP n, ALTER name TYPE jsonb USING to_jsonb(name)")
	b.putSettled("c", `{"name":"8"}`)
	b.want(`("""8""",,s3://in/c,)
("""a""",,s3://in/a,)
(,,s3://in/b,"""7""")`)
}

func TestJSONColumns(t *testing.T) {
	b := newLoadTest(t, `CREATE DOMAIN document AS jsonb; CREATE TABLE exports (id int, a jsonb, b json, c document, d text, _source text);
		CREATE INDEX ON exports (_source)`)
	b.cfg.Format = "ndjson"
	b.putSettled("x", `{"id":1,"a":"1","b":"true","c":"a\"b","d":"1"}
{"id":2,"a":1,"b":true,"c":{"k":["v"]},"d":{"k":1}}
{"id":3,"a":null}`)
	b.want(`(1,"""1""","""true""","""a\\""b""",1,s3://in/x)
(2,1,true,"{""k"": [""v""]}","{""k"":1}",s3://in/x)
(3,,,,,s3://in/x)`)
}

// Lease renewals change the object's row meanwhile. Only read committed allows that.
func TestDefaultIsolation(t *testing.T) {
	b := newLoadTest(t, exportsDDL+`; ALTER DATABASE postgres SET default_transaction_isolation = 'serializable'`)
	b.store.Pool().Reset()
	complete := b.cfg.Complete
	b.cfg.Complete = func(ctx context.Context, tx pgx.Tx, task *pawl.Task) error {
		rows, err := ledger.NewRows(b.store).Load(ctx, []ledger.RowKey{{Pipeline: "load", Bucket: "in", Key: "x"}})
		if err != nil || len(rows) != 1 {
			t.Fatal(rows, err)
		}
		renewed := rows[0]
		renewed.Nonce = ledger.Nonce{1}
		if out, err := ledger.NewRows(b.store).Swap(ctx, []ledger.Change{{Key: renewed.RowKey, Expect: rows[0].Nonce, Row: &renewed}}); err != nil || !out[0].Applied {
			t.Errorf("%+v, %v", out, err)
		}
		return complete(ctx, tx, task)
	}
	b.putSettled("x", "n\n1\n")
	b.want("(,1,,s3://in/x)")
}

type resourceProbe struct {
	bucket.Store
	open func()
}

func (s resourceProbe) Get(ctx context.Context, o event.Object) (bucket.Info, io.ReadCloser, error) {
	s.open()
	return s.Store.Get(ctx, o)
}

func TestResources(t *testing.T) {
	b := newLoadTest(t, exportsDDL)
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	b.cfg.Format = "parquet"
	opened := false
	b.from = resourceProbe{b.objects, func() {
		opened = true
		if n := b.store.Pool().Stat().AcquiredConns(); n != 1 {
			t.Errorf("the handler has %d connections when it opens the object: want 1", n)
		}
		var transactions int
		err := b.store.Pool().QueryRow(t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in transaction%'").Scan(&transactions)
		if err != nil || transactions > 0 {
			t.Errorf("%d transactions are idle when the handler opens the object, %v", transactions, err)
		}
	}}
	b.cfg.Complete = func(ctx context.Context, tx pgx.Tx, task *pawl.Task) error {
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("temporary files %v, %v", left, err)
		}
		return ledger.Complete(ctx, b.store.In(tx), task)
	}
	if row := b.put("x", parquetFile(t, "empty.parquet")); row.Dead || !opened {
		t.Errorf("opened %v: %s", opened, row.LastError)
	}
}

func TestSharedTable(t *testing.T) {
	b := newLoadTest(t, exportsDDL+`; CREATE SCHEMA raw; CREATE TABLE raw.exports (LIKE exports)`)
	pipeline := func(name, table string) pawl.Pipeline {
		b.cfg.Table = table
		h, err := loadaction.New(t.Context(), b.cfg)
		if err != nil {
			t.Fatal(err)
		}
		return pawl.Pipeline{Name: name, Match: pawl.Match{Bucket: "in"}, Handler: h, Transactional: true}
	}
	start := func(ps ...pawl.Pipeline) error {
		_, err := pawl.New(pawl.Config{Ledger: b.store, Objects: b.objects, Pipelines: ps})
		return err
	}
	want := "pipelines a and b can match the same object, and both write to the table exports"
	if err := start(pipeline("a", "exports"), pipeline("b", "public.exports")); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v: want %q", err, want)
	}
	versions := pipeline("a", "exports")
	versions.EachVersion = true
	want = "an older version could replace a newer one in the table exports"
	if err := start(versions); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v: want %q", err, want)
	}
	if err := start(pipeline("a", "exports"), pipeline("b", "raw.exports")); err != nil {
		t.Error(err)
	}
}
