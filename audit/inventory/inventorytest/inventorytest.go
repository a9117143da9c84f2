// Package inventorytest writes reports of S3 Inventory for tests.
//
// https://docs.aws.amazon.com/AmazonS3/latest/userguide/storage-inventory-location.html
package inventorytest

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

// Formats of reports.
const (
	CSV     = "CSV"
	Parquet = "Parquet"
)

// Row is a version of an object.
type Row struct {
	Bucket, Key, Version string
	Old, Marker          bool // Old: not the latest version. Marker: a delete marker.
	Size                 int64
	Modified             time.Time
	ETag                 string
}

// Report is a report of all versions.
type Report struct {
	Format, Schema string
	Bucket         string
	Created        time.Time
	Parts          [][]byte // data files
}

const (
	csvSchema = "Bucket, Key, VersionId, IsLatest, IsDeleteMarker, Size, LastModifiedDate, ETag, StorageClass, ReplicationStatus"

	parquetSchema = "message s3.inventory {  required binary bucket (STRING);  required binary key (STRING);  " +
		"optional binary version_id (STRING);  optional boolean is_latest;  optional boolean is_delete_marker;  optional int64 size;  " +
		"optional int64 last_modified_date (TIMESTAMP(MILLIS,true));  optional binary e_tag (STRING);  optional binary storage_class (STRING);}"
)

// New returns a report with one data file for each slice of rows.
func New(tb testing.TB, format, bucket string, created time.Time, parts ...[]Row) *Report {
	tb.Helper()
	r := &Report{Format: format, Schema: csvSchema, Bucket: bucket, Created: created}
	if format == Parquet {
		r.Schema = parquetSchema
	}
	for _, rows := range parts {
		r.Add(tb, rows)
	}
	return r
}

// Add adds a data file.
func (r *Report) Add(tb testing.TB, rows []Row) {
	tb.Helper()
	if r.Format == Parquet {
		r.Parts = append(r.Parts, ParquetFile(tb, rows))
		return
	}
	r.Parts = append(r.Parts, Zipped(tb, CSVText(rows)))
}

// CSVText returns rows in the CSV format of S3.
func CSVText(rows []Row) string {
	var b strings.Builder
	for _, l := range rows {
		size, etag := strconv.FormatInt(l.Size, 10), l.ETag
		if l.Marker {
			size, etag = "", ""
		}
		for i, field := range []string{
			l.Bucket, strings.ReplaceAll(url.QueryEscape(l.Key), "%2F", "/"), l.Version, strconv.FormatBool(!l.Old), strconv.FormatBool(l.Marker),
			size, l.Modified.UTC().Format("2006-01-02T15:04:05.000Z"), etag, "STANDARD", "",
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

// Zipped compresses a text with gzip, as S3 does.
func Zipped(tb testing.TB, text string) []byte {
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

type parquetRow struct {
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

// ParquetFile returns a Parquet file with the schema that S3 writes.
func ParquetFile(tb testing.TB, rows []Row) []byte {
	tb.Helper()
	lines := make([]parquetRow, len(rows))
	for i, l := range rows {
		lines[i] = parquetRow{
			Bucket: l.Bucket, Key: l.Key, Version: &l.Version, Latest: new(!l.Old), Marker: &l.Marker,
			Modified: new(l.Modified.UnixMilli()), Class: new("STANDARD"),
		}
		if !l.Marker {
			lines[i].Size, lines[i].ETag = new(l.Size), new(l.ETag)
		}
	}
	return ParquetOf(tb, lines)
}

// ParquetOf returns a Parquet file whose columns are the fields of T.
func ParquetOf[T any](tb testing.TB, rows []T) []byte {
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

// PartKey returns the key of data file i.
func (r *Report) PartKey(i int) string {
	return fmt.Sprintf("reports/%s/daily/data/%08x.%s", r.Bucket, i, map[string]string{CSV: "csv.gz", Parquet: "parquet"}[r.Format])
}

func (r *Report) folder() string { return r.Created.UTC().Format("2006-01-02T15-04Z") }

// ManifestKey returns the key of the manifest.
func (r *Report) ManifestKey() string {
	return "reports/" + r.Bucket + "/daily/" + r.folder() + "/manifest.json"
}

// ChecksumKey returns the key of the manifest's checksum.
func (r *Report) ChecksumKey() string {
	return strings.TrimSuffix(r.ManifestKey(), ".json") + ".checksum"
}

// Files returns the files of the report by key. The edits change the manifest.
func (r *Report) Files(tb testing.TB, edits ...func(map[string]any)) map[string][]byte {
	tb.Helper()
	all := make(map[string][]byte)
	list := []any{}
	for i, content := range r.Parts {
		all[r.PartKey(i)] = content
		list = append(list, map[string]any{"key": r.PartKey(i), "size": len(content), "MD5checksum": MD5(content)})
	}
	m := map[string]any{
		"sourceBucket": r.Bucket, "destinationBucket": "arn:aws:s3:::reports", "version": "2016-11-30",
		"creationTimestamp": strconv.FormatInt(r.Created.UnixMilli(), 10), "fileFormat": r.Format, "fileSchema": r.Schema, "files": list,
	}
	for _, edit := range edits {
		edit(m)
	}
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		tb.Fatal(err)
	}
	all[r.ManifestKey()] = text
	all[r.ChecksumKey()] = []byte(MD5(text) + "\n")
	return all
}

// MD5 returns a checksum in the format of a manifest.
func MD5(b []byte) string {
	sum := md5.Sum(b)
	return hex.EncodeToString(sum[:])
}

// Unpack writes files to a new folder, without the first folder of their keys. It returns the
// manifest's folder.
func (r *Report) Unpack(tb testing.TB, files map[string][]byte) string {
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
	return filepath.Join(root, r.Bucket, "daily", r.folder())
}
