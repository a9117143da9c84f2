package inventory

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"github.com/pawlhq/pawl/event"
)

// In the files of S3, every column except the first two is optional.
type parquetRow struct {
	Bucket   string  `parquet:"bucket"`
	Key      string  `parquet:"key"`
	Latest   *bool   `parquet:"is_latest,optional"`
	Marker   *bool   `parquet:"is_delete_marker,optional"`
	Size     *int64  `parquet:"size,optional"`
	Modified *int64  `parquet:"last_modified_date,optional,timestamp(millisecond)"`
	ETag     *string `parquet:"e_tag,optional"`
}

var parquetKinds = map[string]parquet.Kind{
	bucketColumn: parquet.ByteArray, keyColumn: parquet.ByteArray, latestColumn: parquet.Boolean, markerColumn: parquet.Boolean,
	sizeColumn: parquet.Int64, modifiedColumn: parquet.Int64, etagColumn: parquet.ByteArray,
}

func (m *manifest) readParquet(f *os.File, yield func(*row) error) (err error) {
	defer func() {
		if p := recover(); p != nil { // the library panics on some damaged files
			err = fmt.Errorf("invalid Parquet file: %v", p)
		}
	}()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	file, err := parquet.OpenFile(f, info.Size(), parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return fmt.Errorf("not a Parquet file: %w", err)
	}
	if err := m.checkFile(file.Schema()); err != nil {
		return err
	}
	r := parquet.NewGenericReader[parquetRow](file)
	defer func() { _ = r.Close() }() // the file was only read
	rows := make([]parquetRow, 1000)
	for left := file.NumRows(); ; {
		n, err := r.Read(rows)
		left -= int64(n)
		for i := range rows[:n] {
			if err := yield(rows[i].row()); err != nil {
				return err
			}
		}
		if err == io.EOF && left == 0 {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%d of its rows are missing: %w", left, err)
		}
	}
}

func (m *manifest) checkFile(schema *parquet.Schema) error {
	for _, path := range schema.Columns() {
		if name := csvName(path[0]); len(path) != 1 || m.index(name) < 0 {
			return fmt.Errorf("it has a column %s, which the manifest's fileSchema does not have", event.Quote(path[0]))
		}
	}
	for _, name := range m.columns {
		leaf, ok := schema.Lookup(parquetName(name))
		if !ok {
			return fmt.Errorf("the column %s of the manifest's fileSchema is missing", parquetName(name))
		}
		kind, read := parquetKinds[name]
		if read && (leaf.Node.Type().Kind() != kind || leaf.Node.Repeated()) || name == modifiedColumn && !isMillis(leaf.Node) {
			return fmt.Errorf("column %s has type %s, which is not supported", parquetName(name), leaf.Node)
		}
	}
	return nil
}

func isMillis(n parquet.Node) bool {
	t := n.Type().LogicalType()
	if t == nil {
		return false
	}
	stamp, ok := t.Value.(*format.TimestampType)
	return ok && stamp.Unit.Value.Duration() == time.Millisecond
}

func (p *parquetRow) row() *row {
	r := &row{bucket: p.Bucket, key: p.Key, size: -1}
	r.old = p.Latest != nil && !*p.Latest
	r.marker = p.Marker != nil && *p.Marker
	if p.Size != nil {
		r.size = *p.Size
	}
	if p.Modified != nil {
		r.modified = time.UnixMilli(*p.Modified)
	}
	if p.ETag != nil {
		r.etag = *p.ETag
	}
	return r
}
