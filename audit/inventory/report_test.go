package inventory

import (
	"bytes"
	"compress/gzip"
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
)

// created is when the reports of the tests were made.
var created = time.Date(2026, time.March, 1, 1, 0, 0, 0, time.UTC)

// line is a row of a report to write.
type line struct {
	bucket, key, version string
	old, marker          bool
	size                 int64
	modified             time.Time
	etag                 string
}

func object(key string, i int) line {
	return line{bucket: "photos", key: key, size: int64(i), modified: created.Add(-time.Duration(i+1) * time.Second), etag: fmt.Sprintf("%032x", i)}
}

// report writes what S3 would.
type report struct {
	format  string
	schema  string
	bucket  string
	created time.Time
	folder  string
	parts   [][]byte
}

const (
	currentCSV  = "Bucket, Key, Size, LastModifiedDate, ETag, StorageClass, ReplicationStatus"
	versionsCSV = "Bucket, Key, VersionId, IsLatest, IsDeleteMarker, Size, LastModifiedDate, ETag, StorageClass, ReplicationStatus"

	parquetSchema = "message s3.inventory {  required binary bucket (STRING);  required binary key (STRING);  " +
		"optional binary version_id (STRING);  optional boolean is_latest;  optional boolean is_delete_marker;  optional int64 size;  " +
		"optional int64 last_modified_date (TIMESTAMP(MILLIS,true));  optional binary e_tag (STRING);  optional binary storage_class (STRING);}"
)

// newReport returns a report of one data file for each slice of lines.
func newReport(tb testing.TB, format string, parts ...[]line) *report {
	tb.Helper()
	r := &report{format: format, schema: versionsCSV, bucket: "photos", created: created, folder: "2026-03-01T01-00Z"}
	if format == formatParquet {
		r.schema = parquetSchema
	}
	for _, lines := range parts {
		if format == formatParquet {
			r.parts = append(r.parts, parquetFile(tb, lines))
		} else {
			r.parts = append(r.parts, zipped(tb, csvText(lines)))
		}
	}
	return r
}

func csvText(lines []line) string {
	var b strings.Builder
	for _, l := range lines {
		size, etag := strconv.FormatInt(l.size, 10), l.etag
		if l.marker {
			size, etag = "", ""
		}
		for i, field := range []string{
			l.bucket, strings.ReplaceAll(url.QueryEscape(l.key), "%2F", "/"), l.version, strconv.FormatBool(!l.old), strconv.FormatBool(l.marker),
			size, l.modified.UTC().Format("2006-01-02T15:04:05.000Z"), etag, "STANDARD", "",
		} {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(`"` + field + `"`)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func zipped(tb testing.TB, text string) []byte {
	tb.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write([]byte(text)); err != nil {
		tb.Fatal(err)
	}
	if err := z.Close(); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

// parquetLine has the columns of S3's files, and their types.
type parquetLine struct {
	Bucket   string  `parquet:"bucket,snappy"`
	Key      string  `parquet:"key,snappy"`
	Version  *string `parquet:"version_id,optional,snappy"`
	Latest   *bool   `parquet:"is_latest,optional"`
	Marker   *bool   `parquet:"is_delete_marker,optional"`
	Size     *int64  `parquet:"size,optional,snappy"`
	Modified *int64  `parquet:"last_modified_date,optional,timestamp(millisecond),snappy"`
	ETag     *string `parquet:"e_tag,optional,snappy"`
	Class    *string `parquet:"storage_class,optional,snappy"`
}

func parquetFile(tb testing.TB, lines []line) []byte {
	tb.Helper()
	rows := make([]parquetLine, len(lines))
	for i, l := range lines {
		rows[i] = parquetLine{
			Bucket: l.bucket, Key: l.key, Version: &l.version, Latest: new(!l.old), Marker: &l.marker,
			Modified: new(l.modified.UnixMilli()), Class: new("STANDARD"),
		}
		if !l.marker {
			rows[i].Size, rows[i].ETag = new(l.size), new(l.etag)
		}
	}
	return parquetOf(tb, rows)
}

func parquetOf[T any](tb testing.TB, rows []T) []byte {
	tb.Helper()
	var b bytes.Buffer
	w := parquet.NewGenericWriter[T](&b)
	if _, err := w.Write(rows); err != nil {
		tb.Fatal(err)
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

// partKey is where S3 puts a data file.
func (r *report) partKey(i int) string {
	return fmt.Sprintf("reports/%s/daily/data/%08x.%s", r.bucket, i, map[string]string{formatCSV: "csv.gz", formatParquet: "parquet"}[r.format])
}

func (r *report) manifestKey() string {
	return "reports/" + r.bucket + "/daily/" + r.folder + "/manifest.json"
}

// files returns the report's files by their keys. Edits change the manifest.
func (r *report) files(tb testing.TB, edits ...func(map[string]any)) map[string][]byte {
	tb.Helper()
	all := make(map[string][]byte)
	list := []any{}
	for i, content := range r.parts {
		all[r.partKey(i)] = content
		list = append(list, map[string]any{"key": r.partKey(i), "size": len(content), "MD5checksum": md5Of(content)})
	}
	m := map[string]any{
		"sourceBucket": r.bucket, "destinationBucket": "arn:aws:s3:::reports", "version": "2016-11-30",
		"creationTimestamp": strconv.FormatInt(r.created.UnixMilli(), 10), "fileFormat": r.format, "fileSchema": r.schema, "files": list,
	}
	for _, edit := range edits {
		edit(m)
	}
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		tb.Fatal(err)
	}
	all[r.manifestKey()] = text
	all[strings.TrimSuffix(r.manifestKey(), ".json")+".checksum"] = []byte(md5Of(text) + "\n")
	return all
}

func md5Of(b []byte) string {
	sum := md5.Sum(b)
	return hex.EncodeToString(sum[:])
}

// unpack writes files below a new folder, without the first folder of their keys,
// and returns the manifest's.
func (r *report) unpack(tb testing.TB, files map[string][]byte) string {
	tb.Helper()
	root := tb.TempDir()
	for key := range maps.Keys(files) {
		_, tail, _ := strings.Cut(key, "/")
		name := filepath.Join(root, filepath.FromSlash(tail))
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			tb.Fatal(err)
		}
		if err := os.WriteFile(name, files[key], 0o600); err != nil {
			tb.Fatal(err)
		}
	}
	return filepath.Join(root, r.bucket, "daily", r.folder)
}
