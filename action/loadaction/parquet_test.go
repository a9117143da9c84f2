package loadaction_test

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
)

func parquetFile(t *testing.T, name string) []byte {
	t.Helper()
	body, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func TestEmptyParquetRemovesRows(t *testing.T) {
	b := newLoadTest(t, exportsDDL)
	b.put("x", []byte("name\nbefore\n"))
	b.cfg.Format = "parquet"
	if row := b.put("x", parquetFile(t, "empty.parquet")); row.Dead || !row.Settled() {
		t.Errorf("dead %v, settled %v: %s", row.Dead, row.Settled(), row.LastError)
	}
	b.want("")
}

func TestParquetTypes(t *testing.T) {
	b := newLoadTest(t, `SET timezone = 'UTC'; CREATE TABLE exports (at timestamptz, whole int, price text, word text, raw bytea, _source text);
		CREATE INDEX ON exports (_source)`)
	b.cfg.Format = "parquet"
	if row := b.put("x", parquetFile(t, "types.parquet")); row.Dead || !row.Settled() {
		t.Errorf("dead %v, settled %v: %s", row.Dead, row.Settled(), row.LastError)
	}
	b.want(`("1969-07-20 20:17:40+00",-7,-0.05,"","\\x",s3://in/x)
("2026-03-01 12:00:00.123456+00",42,12.50,café,"\\x00ff",s3://in/x)
(,,,,,s3://in/x)`)
}

func TestHugeDecimals(t *testing.T) {
	b := newLoadTest(t, `CREATE TABLE exports (d text, _source text); CREATE INDEX ON exports (_source)`)
	b.cfg.Format = "parquet"
	for _, tc := range []struct {
		scale, bytes int
		want         string
	}{
		{1 << 30, 1, "the decimal column d has the scale 1073741824: at most 1000 can be loaded"},
		{2, 65537, "row 1: a decimal of 65537 bytes is too large: at most 65536"},
	} {
		var file bytes.Buffer
		w := parquet.NewWriter(&file, parquet.NewSchema("s", parquet.Group{"d": parquet.Decimal(tc.scale, 1<<30, parquet.ByteArrayType)}))
		if _, err := w.WriteRows([]parquet.Row{{parquet.ByteArrayValue(make([]byte, tc.bytes)).Level(0, 0, 0)}}); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if row := b.put("x", file.Bytes()); !row.Dead || !strings.Contains(row.LastError, tc.want) {
			t.Errorf("dead %v, %q: want %q", row.Dead, row.LastError, tc.want)
		}
	}
}
