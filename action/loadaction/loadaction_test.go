package loadaction_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/action/loadaction"
	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/bucket/membucket"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/proof/servertest"
	"github.com/pawlhq/pawl/source"
	"github.com/pawlhq/pawl/store/postgres"
)

type loadTest struct {
	*testing.T
	store   *postgres.Store
	objects *membucket.Store
	log     bytes.Buffer
	changes int
	retry   pawl.Retry
	cfg     loadaction.Config
	handler pawl.Handler // default: a new one for each change
	from    bucket.Store // what the handler reads; default objects
}

func newLoadTest(t *testing.T, ddl string) *loadTest {
	server := servertest.Postgres(t)
	server.Exec(ddl)
	records, err := postgres.Open(t.Context(), server.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = records.Close() })
	b := &loadTest{T: t, store: records, objects: membucket.New(time.Now, []string{"in"}), retry: pawl.Retry{Attempts: 1}}
	b.cfg = loadaction.Config{
		Pool: records.Pool(), Table: "exports", Format: "csv", Logger: slog.New(slog.NewTextHandler(&b.log, nil)),
		Complete: func(ctx context.Context, tx pgx.Tx, t *pawl.Task) error {
			return ledger.Complete(ctx, records.In(tx), t)
		},
	}
	return b
}

type oneEvent struct{ e event.Event }

func (s oneEvent) Run(ctx context.Context, to source.Sink) error {
	done := make(chan struct{})
	err := to.Deliver(ctx, source.Delivery{Events: []event.Event{s.e}, Done: func(source.Outcome) { close(done) }})
	if err == nil {
		<-done
	}
	return err
}

// put removes the object if body is nil.
func (b *loadTest) put(key string, body []byte) ledger.Row {
	b.Helper()
	ref := event.Object{Bucket: "in", Key: key}
	var err error
	kind := event.Created
	if body == nil {
		kind = event.Removed
		err = b.objects.Delete(b.Context(), ref, bucket.Condition{})
	} else {
		_, err = b.objects.Put(b.Context(), ref, bucket.Object{Body: bytes.NewReader(body), Size: int64(len(body))}, bucket.Condition{})
	}
	if err != nil {
		b.Fatal(err)
	}
	b.changes++
	seq, err := event.ParseSequencer(fmt.Sprintf("00%016X", b.changes))
	if err != nil {
		b.Fatal(err)
	}
	h := b.handler
	if h == nil {
		if h, err = loadaction.New(b.Context(), b.cfg); err != nil {
			b.Fatal(err)
		}
	}
	from := b.from
	if from == nil {
		from = b.objects
	}
	p, err := pawl.New(pawl.Config{
		Ledger: b.store, Objects: from, Logger: slog.New(slog.DiscardHandler),
		Sources:   []pawl.Source{oneEvent{event.Event{Object: ref, Kind: kind, Sequencer: seq, Time: time.Now(), Dialect: event.AWS}}},
		Pipelines: []pawl.Pipeline{{Name: "load", Match: pawl.Match{Bucket: "in"}, Handler: h, Transactional: true}},
		Retry:     b.retry,
	})
	if err != nil {
		b.Fatal(err)
	}
	if err := p.Run(b.Context()); err != nil {
		b.Fatal(err)
	}
	rows, err := ledger.NewRows(b.store).Load(b.Context(), []ledger.RowKey{{Pipeline: "load", Bucket: "in", Key: key}})
	if err != nil || len(rows) != 1 {
		b.Fatal(rows, err)
	}
	return rows[0]
}

func (b *loadTest) table() string {
	b.Helper()
	rows, err := b.store.Pool().Query(b.Context(), "SELECT e::text FROM exports e ORDER BY 1")
	if err != nil {
		b.Fatal(err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		b.Fatal(err)
	}
	return strings.Join(all, "\n")
}

func (b *loadTest) want(want string) {
	b.Helper()
	if got := b.table(); got != want {
		b.Errorf("the table holds\n%s\nwant\n%s", got, want)
	}
}

const exportsDDL = `CREATE TABLE exports (name text, n int, at timestamptz, _source text NOT NULL); CREATE INDEX ON exports (_source); SET timezone = 'UTC'`

func TestRowsAreReplaced(t *testing.T) {
	b := newLoadTest(t, exportsDDL)
	b.put("a.csv", []byte("n,name\n1,one\n2,\"two, and\nmore\"\n3,\n4,\"\"\n\n\n"))
	b.put("b.csv", []byte("\uFEFFname\nb"))
	b.want(`("",4,,s3://in/a.csv)
("two, and
more",2,,s3://in/a.csv)
(,3,,s3://in/a.csv)
(b,,,s3://in/b.csv)
(one,1,,s3://in/a.csv)`)
	b.put("a.csv", []byte("name\r\nnew\r\n"))
	b.want("(b,,,s3://in/b.csv)\n(new,,,s3://in/a.csv)")
	b.put("b.csv", nil)
	b.want("(new,,,s3://in/a.csv)")
	if row := b.put("a.csv", []byte("name\n")); row.Dead || !row.Settled() {
		t.Error(row.LastError)
	}
	b.want("")
}

func TestFormats(t *testing.T) {
	b := newLoadTest(t, exportsDDL)
	type row struct {
		Name string    `parquet:"name"`
		N    *int64    `parquet:"n,optional"`
		At   time.Time `parquet:"at,timestamp(millisecond)"`
	}
	two := int64(2)
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var file bytes.Buffer
	if err := parquet.Write(&file, []row{{"tab\there", &two, at}, {`back\slash`, nil, at}}); err != nil {
		t.Fatal(err)
	}
	plain := map[string][]byte{
		"csv":     []byte("name,n,at\ntab\there,2,2026-03-01T12:00:00Z\nback\\slash,,2026-03-01T12:00:00Z\n"),
		"ndjson":  []byte(`{"name":"tab\there","n":2,"at":"2026-03-01T12:00:00Z"}` + "\n" + `{"at":"2026-03-01T12:00:00Z","name":"back\\slash"}`),
		"parquet": file.Bytes(),
	}
	for format, body := range plain {
		for packing, pack := range map[string]func(io.Writer) io.WriteCloser{
			"plain": nil,
			"gzip":  func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) },
			"zstd": func(w io.Writer) io.WriteCloser {
				z, err := zstd.NewWriter(w)
				if err != nil {
					t.Fatal(err)
				}
				return z
			},
		} {
			t.Run(format+" "+packing, func(t *testing.T) {
				b.T, b.cfg.Format = t, format
				packed := bytes.NewBuffer(nil)
				if pack == nil {
					packed.Write(body)
				} else {
					w := pack(packed)
					if _, err := w.Write(body); err != nil {
						t.Fatal(err)
					}
					if err := w.Close(); err != nil {
						t.Fatal(err)
					}
				}
				if row := b.put("x", packed.Bytes()); !row.Settled() || row.Dead {
					t.Fatal(row.LastError)
				}
				b.want(`("back\\slash",,"2026-03-01 12:00:00+00",s3://in/x)` + "\n" + `("tab	here",2,"2026-03-01 12:00:00+00",s3://in/x)`)
			})
		}
	}
}

func TestInvalidFiles(t *testing.T) {
	b := newLoadTest(t, exportsDDL+`; ALTER TABLE exports ADD CHECK (n < 1000)`)
	b.cfg.MaxLine, b.cfg.MaxBytes = 1000, 5000
	long := strings.Repeat("x", 300)
	for _, tc := range []struct{ format, body, want string }{
		{"csv", "", "the file is empty: the first line of a CSV file names the columns"},
		{"csv", "name,m\n", `line 1: the table exports has no column m: it has name, n, at`},
		{"csv", "name,_source\n", "line 1: the column _source is reserved for Pawl"},
		{"csv", "n,n\n", "line 1: the column n appears twice"},
		{"csv", "name,n\na,1\nb,two\n", `line 3, column n, value "two": invalid input syntax for type integer`},
		{"csv", "name,n\n\"a\nb\",1\nb," + long + "\n", `line 4, column n, value "xxx`},
		{"csv", "name,n\na,1\nb\n", "line 3 has too few values: the first line names 2 columns"},
		{"csv", "name,n\na,1\nb,2,3\n", "line 3: extra data after last expected column"},
		{"csv", "name,n\n\na,1\n", "line 2 is empty"},
		{"csv", "name,n\na,1\n\"a,1\nb,2\n", "line 3: a quoted value has no end"},
		{"csv", "name,n\n\"a\nb\",\"c\nd,1\n", "line 3: a quoted value has no end"},
		{"csv", "name,n\n\"a,1\n" + long + "\n" + long + "\n" + long + "\n" + long + "\n", "line 2: a quoted value has no end within 1000 bytes"},
		{"csv", "name,n\n5\" disk,1\nfine,2\n7\" disk,3\n", "line 2: a quote in a value that does not begin with one"},
		{"csv", "name,n\n\"a\nb\"c,1\n", "line 3: text after the closing quote of a value"},
		{"csv", "na\"me,n\n", "line 1: a quote in a value that does not begin with one"},
		{"csv", "name\n\xff\n", `line 2: invalid byte sequence for encoding "UTF8"`},
		{"csv", "n\n1000\n", "violates check constraint"},
		{"csv", "name\n" + long + long + long + long, "line 2 is longer than 1000 bytes: check the format of the file, or raise max_line"},
		{"csv", "name\n" + strings.Repeat(long+"\n", 20), "the file is larger than 5000 bytes, unpacked: split it, or raise max_bytes"},
		{"ndjson", `{"n":1}` + "\n" + `[1]`, `line 2 is not a JSON object: "[1]"`},
		{"ndjson", `{"n":1}` + "\n" + `{"n":"two"}`, `line 2, column n, value "two": invalid input syntax for type integer`},
		{"ndjson", `{"n":1}` + "\n" + `{"n":`, "line 2: "},
		{"ndjson", `{"n":1}` + "\n" + `{"m":1}`, "line 2: the table exports has no column m"},
		{"ndjson", `{"n":1} {"n":2}`, "line 1 has text after its object"},
		{"parquet", "PAR1 is not enough", "the file is not a Parquet file, or is damaged"},
		{"csv", "\x1f\x8bgarbage", "the file is damaged"},
	} {
		b.cfg.Format = "csv"
		if row := b.put("x", []byte(fmt.Sprintf("name\nbefore %d\n", b.changes))); row.Dead {
			t.Fatal(row.LastError)
		}
		before := b.table()
		b.cfg.Format = tc.format
		row := b.put("x", []byte(tc.body))
		if !row.Dead || !strings.Contains(row.LastError, tc.want) || !strings.HasPrefix(row.LastError, "load s3://in/x: ") {
			t.Errorf("%q: dead %v, %q: want %q", tc.body, row.Dead, row.LastError, tc.want)
		}
		if len(row.LastError) > 512 {
			t.Errorf("an error of %d bytes", len(row.LastError))
		}
		b.want(before)
	}
}

// The line has two gigabytes of equal frames.
func TestEndlessLine(t *testing.T) {
	b := newLoadTest(t, exportsDDL)
	z, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	packed := z.EncodeAll([]byte("name\n"), nil)
	packed = append(packed, bytes.Repeat(z.EncodeAll(bytes.Repeat([]byte("x"), 16<<20), nil), 128)...)
	for _, format := range []string{"csv", "ndjson"} {
		b.cfg.Format = format
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		row := b.put("x."+format, packed)
		runtime.ReadMemStats(&after)
		if want := "longer than 1048576 bytes"; !row.Dead || format == "csv" && !strings.Contains(row.LastError, want) {
			t.Errorf("%s: dead %v, %q: want %q", format, row.Dead, row.LastError, want)
		}
		if used := after.TotalAlloc - before.TotalAlloc; used > 300<<20 {
			t.Errorf("%s: %d MB were allocated", format, used>>20)
		}
	}
}

func TestTableIsChecked(t *testing.T) {
	b := newLoadTest(t, `CREATE TABLE exports (n int); CREATE TABLE fine (n int, "from" text); CREATE SCHEMA raw; CREATE TABLE raw.exports (n int, _source text)`)
	for _, tc := range []struct{ table, source, want string }{
		{"absent", "", "there is no table absent: create it, or correct its name"},
		{"exports", "", `needs a text column _source for the URL of each row's object (ALTER TABLE exports ADD "_source" text)`},
		{"exports", "n", `needs a text column n`},
		{"fine", "from", ""},
		{"raw.exports", "", ""},
	} {
		b.cfg.Table, b.cfg.Source = tc.table, tc.source
		_, err := loadaction.New(t.Context(), b.cfg)
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: %v: want %q", tc.table, err, tc.want)
		}
	}
	if !strings.Contains(b.log.String(), `CREATE INDEX ON \"fine\" (\"from\")`) {
		t.Errorf("the log does not report the missing index:\n%s", &b.log)
	}
	b.cfg.Format = "xlsx"
	if _, err := loadaction.New(t.Context(), b.cfg); err == nil || errors.Is(err, ledger.ErrUnusable) {
		t.Error(err)
	}
}
