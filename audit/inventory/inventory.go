// Package inventory reads an S3 Inventory report as a listing of the bucket that
// it is about. For a bucket of a billion objects that is the only listing that
// can be afforded.
// https://docs.aws.amazon.com/AmazonS3/latest/userguide/storage-inventory.html
//
// Understood are reports in CSV and Parquet, of current versions or of all: of
// those the latest count, unless they are delete markers. The report must include
// Size, LastModifiedDate and ETag. It is read in full, and checked, before a
// single key of it is believed: the MD5 of the manifest and of each file, the
// columns against the manifest's schema, and the bucket and the form of each row.
//
// # Order
//
// S3 promises no order of the rows. They are sorted into runs on disk, in a
// folder below [os.TempDir] that [Report.Close] removes, and merged by
// [Report.List]. This takes the memory of one batch of rows and one read buffer for
// each run, however large the report is. Files that are sorted already, and
// follow each other, become one run. A row takes about 60 bytes of disk, and a
// few more for long keys without common beginnings; the data files lie there as
// well, one at a time.
//
// # Age
//
// A report shows the bucket at [Report.Created] or somewhat later: S3 begins to
// scan then, and delivers within two days. So it says nothing of an object that
// was written, or of a row that was touched, after Created: such a row's object
// may well be missing in it. Of the others each difference is a question, and no
// answer: an object that was overwritten or removed since, or that an inventory
// with a filter by prefix leaves out, looks like a loss. Whoever looks at the
// object before it acts, as an audit does, takes none of them for one, and pays a
// request for each. Changes after Created are the next report's.
package inventory

import (
	"context"
	"fmt"
	"io"
	"iter"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/event"
)

// Expect says which report is wanted. The zero Expect takes any.
type Expect struct {
	Bucket    string    // that it is about
	NotBefore time.Time // that it was created
}

// Report is a report on disk, sorted. It is safe for concurrent use.
type Report struct {
	Bucket  string    // that it is about
	Created time.Time // when S3 began to scan the bucket
	Objects int64     // that are in it, for an estimate

	dir  string // of its temporary files
	runs []*run
}

// OpenFolder reads the report in a folder that holds manifest.json. Its data
// files lie below that folder or below the one above, as in a bucket: their keys
// may have lost folders at their beginning.
func OpenFolder(ctx context.Context, dir string, expect Expect) (*Report, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	return open(ctx, folder(dir), filepath.Base(dir)+"/manifest.json", expect)
}

// OpenBucket reads the report whose manifest.json is an object, from the bucket
// that this is in.
func OpenBucket(ctx context.Context, store bucket.Store, manifest event.Object, expect Expect) (*Report, error) {
	get := func(ctx context.Context, key string) (io.ReadCloser, error) {
		_, r, err := store.Get(ctx, event.Object{Bucket: manifest.Bucket, Key: key})
		return r, err
	}
	return open(ctx, get, manifest.Key, expect)
}

func open(ctx context.Context, get files, name string, expect Expect) (*Report, error) {
	m, err := readManifest(ctx, get, name)
	if err != nil {
		return nil, fmt.Errorf("inventory %s: %w", event.Quote(name), err)
	}
	if err := m.checkExpected(expect, path.Base(path.Dir(name))); err != nil {
		return nil, fmt.Errorf("inventory %s: %w", event.Quote(name), err)
	}
	dir, err := os.MkdirTemp("", "pawl-inventory-")
	if err != nil {
		return nil, fmt.Errorf("inventory %s: creating a folder for sorting: %w", event.Quote(name), err)
	}
	s := &sorter{dir: dir, room: maxBatchBytes, fanIn: runsPerLevel}
	r := &Report{Bucket: m.SourceBucket, Created: m.created, dir: dir}
	err = m.read(ctx, get, s)
	r.runs, r.Objects = s.runs, s.rows
	if err != nil {
		_ = r.Close() // nothing of it is believed
		return nil, fmt.Errorf("inventory %s: %w", event.Quote(name), err)
	}
	return r, nil
}

// Close removes the report's temporary files. No List may be running.
func (r *Report) Close() error {
	for _, run := range r.runs {
		_ = run.f.Close() // it was only read
	}
	return os.RemoveAll(r.dir)
}

// List yields the objects as [bucket.Store] does. Where a report has a key twice,
// because it changed during the scan, the newer row counts.
func (r *Report) List(ctx context.Context, name, prefix, startAfter string) iter.Seq2[bucket.Info, error] {
	return func(yield func(bucket.Info, error) bool) {
		if name != r.Bucket {
			yield(bucket.Info{}, fmt.Errorf("the inventory lists bucket %s, not %s: use the inventory of that bucket", event.Quote(r.Bucket), event.Quote(name)))
			return
		}
		for e, err := range merge(ctx, r.runs, max(prefix, startAfter+"\x00")) {
			if err != nil {
				yield(bucket.Info{}, fmt.Errorf("reading the sorted inventory in %s: %w", r.dir, err))
				return
			}
			if !strings.HasPrefix(e.key, prefix) {
				return // the first key behind them
			}
			if !yield(e.info(), nil) {
				return
			}
		}
	}
}
