// Package inventory reads a report of S3 Inventory as a listing of its bucket.
//
// https://docs.aws.amazon.com/AmazonS3/latest/userguide/storage-inventory.html
//
// The package supports reports in CSV and Parquet, of current or of all versions. It ignores old
// versions and delete markers. The report must include Size, LastModifiedDate and ETag. The
// package reads and checks the whole report, including all MD5 sums, before it returns a key.
//
// # Order
//
// S3 does not guarantee an order of the rows. The package sorts them into runs on disk, below
// [os.TempDir]; [Report.Close] removes them. It needs memory for one batch of rows and one read
// buffer per run. A row takes about 60 bytes on disk.
//
// # Age
//
// A report shows the bucket at [Report.Created] or up to two days later, and may lack changes
// after Created. A caller must therefore check an object, with one request, before it acts on a
// difference. An audit does so.
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

// Expect restricts the accepted reports. The zero value accepts any report.
type Expect struct {
	Bucket    string
	NotBefore time.Time // earliest accepted value of Created
}

// Report is a sorted report on disk. It is safe for concurrent use.
type Report struct {
	Bucket  string
	Created time.Time // time at which S3 started the scan
	Objects int64     // estimate

	dir  string
	runs []*run
}

// OpenFolder reads the report in the folder of manifest.json. The data files must be below that
// folder or its parent. Their paths may lack leading folders of their keys.
func OpenFolder(ctx context.Context, dir string, expect Expect) (*Report, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	return open(ctx, folder(dir), filepath.Base(dir)+"/manifest.json", expect)
}

// OpenBucket reads the report of a manifest.json. The data files must be in the same bucket.
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
		_ = r.Close()
		return nil, fmt.Errorf("inventory %s: %w", event.Quote(name), err)
	}
	return r, nil
}

// Close removes the temporary files. No List may be running.
func (r *Report) Close() error {
	for _, run := range r.runs {
		_ = run.f.Close()
	}
	return os.RemoveAll(r.dir)
}

// List yields the objects in the same form as [bucket.Store]. If an object changed during the
// scan, it yields only the newer row.
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
				return
			}
			if !yield(e.info(), nil) {
				return
			}
		}
	}
}
