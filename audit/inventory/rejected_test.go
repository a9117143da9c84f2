package inventory

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl/audit/inventory/inventorytest"
	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/event"
)

type bad struct {
	name   string
	change func(*testing.T, *inventorytest.Report)
	edit   func(map[string]any)
	files  func(*inventorytest.Report, map[string][]byte)
	expect Expect
	want   string // part of the error
}

func set(name string, value any) func(map[string]any) {
	return func(m map[string]any) { m[name] = value }
}

func editPart(name string, value any) func(map[string]any) {
	return func(m map[string]any) { m["files"].([]any)[0].(map[string]any)[name] = value }
}

func without(name string) func(*testing.T, *inventorytest.Report) {
	return func(_ *testing.T, r *inventorytest.Report) {
		r.Schema = strings.Replace(r.Schema, name, "StorageClass", 1)
	}
}

func rows(text string) func(*testing.T, *inventorytest.Report) {
	return func(t *testing.T, r *inventorytest.Report) { r.Parts[0] = inventorytest.Zipped(t, text) }
}

const badRow = `"photos","a","","true","false","1","2026-02-01T00:00:00.000Z","e","STANDARD",""`

func csvRow(old, new string) func(*testing.T, *inventorytest.Report) {
	return rows(badRow + "\n" + strings.Replace(badRow, old, new, 1) + "\n")
}

var badManifests = []bad{
	{name: "no manifest", files: func(r *inventorytest.Report, f map[string][]byte) { delete(f, r.ManifestKey()) }, want: "manifest.json"},
	{name: "no checksum", files: func(r *inventorytest.Report, f map[string][]byte) {
		delete(f, r.ChecksumKey())
	}, want: "manifest.checksum in the same folder"},
	{name: "another checksum", files: func(r *inventorytest.Report, f map[string][]byte) {
		f[r.ManifestKey()] = append(f[r.ManifestKey()], ' ')
	}, want: "manifest.checksum says"},
	{name: "no JSON", files: func(r *inventorytest.Report, f map[string][]byte) { replaceManifest(r, f, "<html>") }, want: "not the manifest of an inventory"},
	{name: "an array", files: func(r *inventorytest.Report, f map[string][]byte) { replaceManifest(r, f, "[]") }, want: "not the manifest of an inventory"},
	{name: "an empty object", files: func(r *inventorytest.Report, f map[string][]byte) { replaceManifest(r, f, "{}") }, want: "its version is"},
	{name: "another version", edit: set("version", "2030-01-01"), want: "only 2016-11-30 is supported"},
	{name: "no bucket", edit: set("sourceBucket", ""), want: "sourceBucket is missing"},
	{name: "wrong bucket", expect: Expect{Bucket: "videos"}, want: "lists bucket photos, not videos"},
	{name: "no time", edit: set("creationTimestamp", "yesterday"), want: "is not a Unix time"},
	{name: "negative time", edit: set("creationTimestamp", "-5"), want: "is not a Unix time"},
	{name: "too old", expect: Expect{NotBefore: created.Add(time.Second)}, want: "before 2026-03-01 01:00 UTC: use a newer report"},
	{name: "from another day", edit: set("creationTimestamp", fmt.Sprint(created.AddDate(0, 0, 1).UnixMilli())), want: "the manifest belongs to another report"},
	{name: "ORC", edit: set("fileFormat", "ORC"), want: "format ORC is not supported: configure the inventory as CSV or Parquet"},
	{name: "no list of files", edit: set("files", nil), want: "the list of files is missing"},
	{name: "a file without a key", edit: editPart("key", ""), want: `it lists a file ""`},
	{name: "a file twice", edit: func(m map[string]any) {
		m["files"] = append(m["files"].([]any), m["files"].([]any)[0])
	}, want: "twice"},
	{name: "a negative size", edit: editPart("size", -1), want: "of -1 bytes"},
	{name: "missing part", files: func(r *inventorytest.Report, f map[string][]byte) { delete(f, r.PartKey(0)) }, want: "file reports/photos/daily/data/00000000"},
	{name: "wrong size", edit: editPart("size", 1), want: "but the manifest says 1: download it again"},
	{name: "wrong checksum", edit: editPart("MD5checksum", strings.Repeat("0", 32)), want: "but the manifest says 0000"},
	{name: "damaged", files: func(r *inventorytest.Report, f map[string][]byte) { f[r.PartKey(0)][20] ^= 1 }, want: "the file is damaged"},
}

func replaceManifest(r *inventorytest.Report, f map[string][]byte, text string) {
	f[r.ManifestKey()] = []byte(text)
	f[r.ChecksumKey()] = []byte(inventorytest.MD5([]byte(text)))
}

var badCSV = []bad{
	{name: "no ETag", change: without("ETag"), want: "twice"},
	{name: "no ETag at all", change: func(_ *testing.T, r *inventorytest.Report) { r.Schema = "Bucket, Key, Size, LastModifiedDate" }, want: "does not have the column ETag: the inventory must include Size, LastModifiedDate and ETag"},
	{name: "versions without IsLatest", change: func(_ *testing.T, r *inventorytest.Report) { r.Schema = currentCSV + ", VersionId" }, want: "does not have the column IsLatest"},
	{name: "no schema", edit: set("fileSchema", ""), want: `unknown column ""`},
	{name: "unknown column", change: func(_ *testing.T, r *inventorytest.Report) { r.Schema += ", Colour" }, want: "unknown column Colour: leave that field out"},
	{name: "a column more in the file", change: rows(badRow + `,"x"` + "\n"), want: "does not match fileSchema, which has 10 columns"},
	{name: "a column less in the file", change: rows(`"photos","a"` + "\n"), want: "does not match fileSchema"},
	{name: "a header", change: rows(versionsCSV + "\n"), want: "neither true nor false"},
	{name: "an open quote", change: rows(badRow + "\n" + `"photos`), want: "does not match fileSchema"},
	{name: "not zipped", change: func(_ *testing.T, r *inventorytest.Report) { r.Parts[0] = []byte(badRow) }, want: "gzip"},
	{name: "cut off", change: func(_ *testing.T, r *inventorytest.Report) { r.Parts[0] = r.Parts[0][:len(r.Parts[0])-9] }, want: "unexpected EOF"},
	{name: "another bucket's row", change: csvRow("photos", "videos"), want: "row 2: it belongs to bucket videos"},
	{name: "no key", change: csvRow(`"a"`, `""`), want: "the key has 0 bytes"},
	{name: "a key that is too long", change: csvRow(`"a"`, `"`+strings.Repeat("k", 1025)+`"`), want: "the key has 1025 bytes"},
	{name: "a key that is not encoded", change: csvRow(`"a"`, `"100%"`), want: "line 2: the key 100% is not URL-encoded"},
	{name: "no size", change: csvRow(`"1"`, `""`), want: `the size "" is not a number`},
	{name: "a size below zero", change: csvRow(`"1"`, `"-1"`), want: "a has no valid ETag, Size"},
	{name: "no ETag in a row", change: csvRow(`"e"`, `""`), want: "a has no valid ETag"},
	{name: "no time in a row", change: csvRow("2026-02-01T00:00:00.000Z", "1769904000"), want: "the time 1769904000 does not have the format"},
	{name: "neither true nor false", change: csvRow(`"true"`, `"maybe"`), want: "maybe is neither true nor false"},
	{name: "from another day than it says", change: csvRow("2026-02-01", "2026-03-04"), want: "was modified 2026-03-04T00:00:00Z, but the report was created 2026-03-01T01:00:00Z"},
}

type narrow struct {
	Bucket string `parquet:"bucket"`
	Key    string `parquet:"key"`
}

type micro struct {
	Bucket   string `parquet:"bucket"`
	Key      string `parquet:"key"`
	Size     *int64 `parquet:"size,optional"`
	Modified *int64 `parquet:"last_modified_date,optional,timestamp(microsecond)"`
	ETag     string `parquet:"e_tag"`
}

type text struct {
	Bucket   string `parquet:"bucket"`
	Key      string `parquet:"key"`
	Size     string `parquet:"size"`
	Modified *int64 `parquet:"last_modified_date,optional,timestamp(millisecond)"`
	ETag     string `parquet:"e_tag"`
}

const fiveColumns = "message s3.inventory { required binary bucket (UTF8); required binary key (UTF8); optional int64 size; " +
	"optional int64 last_modified_date (TIMESTAMP_MILLIS); optional binary e_tag (UTF8); }"

func columns[T any](schema string, rows ...T) func(*testing.T, *inventorytest.Report) {
	return func(t *testing.T, r *inventorytest.Report) {
		r.Schema = schema
		r.Parts[0] = inventorytest.ParquetOf(t, rows)
	}
}

func parquetRows(lines ...inventorytest.Row) func(*testing.T, *inventorytest.Report) {
	return func(t *testing.T, r *inventorytest.Report) { r.Parts[0] = inventorytest.ParquetFile(t, lines) }
}

var badParquet = []bad{
	{name: "no Parquet", change: func(_ *testing.T, r *inventorytest.Report) { r.Parts[0] = []byte("PAR1 and no more") }, want: "not a Parquet file"},
	{name: "empty", change: func(_ *testing.T, r *inventorytest.Report) { r.Parts[0] = nil }, want: "not a Parquet file"},
	{name: "cut off", change: func(_ *testing.T, r *inventorytest.Report) { r.Parts[0] = r.Parts[0][:len(r.Parts[0])-9] }, want: "not a Parquet file"},
	{name: "no columns", edit: set("fileSchema", "Bucket, Key"), want: "does not have the column Bucket"},
	{name: "unknown column", change: func(_ *testing.T, r *inventorytest.Report) {
		r.Schema = strings.Replace(r.Schema, "storage_class", "colour", 1)
	}, want: "unknown column colour"},
	{name: "no ETag", edit: set("fileSchema", strings.Replace(fiveColumns, "optional binary e_tag (UTF8);", "", 1)), want: "does not have the column ETag"},
	{name: "a column less in the file", change: columns(fiveColumns, narrow{"photos", "a"}), want: "the column size of the manifest's fileSchema is missing"},
	{name: "a column more in the file", edit: set("fileSchema", fiveColumns), want: "it has a column version_id, which the manifest's fileSchema does not have"},
	{name: "times in another unit", change: columns(fiveColumns, micro{Bucket: "photos", Key: "a"}), want: "column last_modified_date has type"},
	{name: "sizes in text", change: columns(fiveColumns, text{Bucket: "photos", Key: "a"}), want: "column size has type"},
	{name: "another bucket's row", change: parquetRows(object("a", 1), inventorytest.Row{Bucket: "videos", Key: "b"}), want: "row 2: it belongs to bucket videos"},
	{name: "no key", change: parquetRows(object("", 1)), want: "want 1 to 1024"},
	{name: "no ETag in a row", change: parquetRows(inventorytest.Row{Bucket: "photos", Key: "b", Modified: created}), want: "b has no valid ETag"},
	{name: "no size in a row", change: columns(fiveColumns, parquetRow{Bucket: "photos", Key: "a"}), want: "is_latest"},
	{name: "from another day than it says", change: parquetRows(inventorytest.Row{
		Bucket: "photos", Key: "a", ETag: "e", Modified: created.AddDate(0, 0, 3),
	}), want: "a was modified 2026-03-04T01:00:00Z"},
}

func TestBad(t *testing.T) {
	for format, all := range map[string][]bad{formatCSV: slices.Concat(badManifests, badCSV), formatParquet: slices.Concat(badManifests, badParquet)} {
		for _, b := range all {
			t.Run(format+"/"+b.name, func(t *testing.T) {
				rep := inventorytest.New(t, format, "photos", created, []inventorytest.Row{object("a", 1), object("b", 2)}, []inventorytest.Row{object("c", 3)})
				if b.change != nil {
					b.change(t, rep)
				}
				if b.edit == nil {
					b.edit = func(map[string]any) {}
				}
				files := rep.Files(t, b.edit)
				if b.files != nil {
					b.files(rep, files)
				}
				tmp := t.TempDir()
				dir, store := rep.Unpack(t, files), stored(t, files)
				t.Setenv("TMPDIR", tmp)
				_, err := OpenFolder(t.Context(), dir, b.expect)
				refuses(t, err, b.want)
				_, err = OpenBucket(t.Context(), store, event.Object{Bucket: "reports", Key: rep.ManifestKey()}, b.expect)
				refuses(t, err, b.want)
				leaves(t, tmp)
			})
		}
	}
}

func refuses(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil || !strings.HasPrefix(err.Error(), "inventory ") || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v\nwant %q in it", err, want)
	}
}

// TestDamagedParquet corrects the checksum of the damaged file, so that only the Parquet reader
// can reject it.
func TestDamagedParquet(t *testing.T) {
	lines := []inventorytest.Row{}
	for i := range 300 {
		lines = append(lines, object(fmt.Sprintf("in/%d", i), i))
	}
	rep := inventorytest.New(t, formatParquet, "photos", created, lines)
	whole := rep.Parts[0]
	refused := 0
	for i := 0; i < len(whole); i += 97 {
		rep.Parts[0] = slices.Clone(whole)
		rep.Parts[0][i] ^= 0x55
		m, err := parseManifest(rep.Files(t)[rep.ManifestKey()])
		if err != nil {
			t.Fatal(err)
		}
		s := &sorter{dir: t.TempDir(), room: maxBatchBytes, fanIn: runsPerLevel}
		if err := m.read(t.Context(), folder(rep.Unpack(t, rep.Files(t))), s); err != nil {
			refused++
		}
		for _, r := range s.runs {
			_ = r.f.Close()
		}
	}
	if refused == 0 {
		t.Error("none was refused")
	}
	t.Logf("%d of %d refused", refused, len(whole)/97+1)
}

func TestDenied(t *testing.T) {
	rep := inventorytest.New(t, formatCSV, "photos", created)
	files := maps.Clone(rep.Files(t))
	_, err := OpenBucket(t.Context(), stored(t, files), event.Object{Bucket: "elsewhere", Key: rep.ManifestKey()}, Expect{})
	refuses(t, err, bucket.ErrNoBucket.Error())
}
