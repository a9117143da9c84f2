// Package inventory reads a report of S3 Inventory as a listing of its bucket. For a bucket
// with a billion objects, no other listing is affordable.
//
// https://docs.aws.amazon.com/AmazonS3/latest/userguide/storage-inventory.html
//
// The package supports reports in CSV and Parquet, of current or of all versions. It ignores
// old versions and delete markers. The report must include Size, LastModifiedDate and ETag. The
// package reads and checks the whole report before it returns a key: the MD5 of the manifest
// and of each file, the columns against the schema of the manifest, and bucket and format of
// each row.
//
// # Order
//
// S3 does not guarantee an order of the rows. The package sorts them into runs on disk, in a
// folder below [os.TempDir] that [Report.Close] removes. [Report.List] merges the runs. For a
// report of any size, the package needs memory for one batch of rows and one read buffer for
// each run. Consecutive files that are already sorted become one run. A row takes about 60
// bytes on disk. Long keys without common prefixes take more. The package also needs disk space
// for one data file at a time.
//
// # Age
//
// A report shows the bucket at [Report.Created] or somewhat later, because S3 starts the scan
// at that time and delivers the report within two days. The report may lack changes after
// Created, so it may lack an object that the ledger knows. Other differences may also have
// harmless causes: an object was overwritten or deleted since, or the inventory has a prefix
// filter. A caller must therefore check the object before it acts on a difference, as an audit
// does. Each check costs one request.
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

// Expect restricts the accepted reports. The zero Expect accepts any report.
type Expect struct {
	Bucket    string    // the bucket that the report must list
	NotBefore time.Time // earliest accepted creation time of the report
}

// Report is a sorted report on disk. It is safe for concurrent use.
type Report struct {
	Bucket  string    // the bucket that the report lists
	Created time.Time // time at which S3 started the scan
	Objects int64     // estimated number of objects in the report

	dir  string // folder of the temporary files
	runs []*run
}

// OpenFolder reads the report in a folder that contains manifest.json. The data files must be
// below that folder or below its parent. Their paths may lack leading folders of their keys.
func OpenFolder(ctx context.Context, dir string, expect Expect) (*Report, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	return open(ctx, folder(dir), filepath.Base(dir)+"/manifest.json", expect)
}

// OpenBucket reads the report whose manifest.json is the given object. The data files must be
// in the same bucket.
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
		_ = r.Close() // the report is rejected anyway
		return nil, fmt.Errorf("inventory %s: %w", event.Quote(name), err)
	}
	return r, nil
}

// Close removes the temporary files. No List may be running.
func (r *Report) Close() error {
	for _, run := range r.runs {
		_ = run.f.Close() // the file was only read
	}
	return os.RemoveAll(r.dir)
}

// List yields the objects in the same form as [bucket.Store]. A report may have a key twice,
// because the object changed during the scan. List then yields only the newer row.
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
				return // first key after the prefix
			}
			if !yield(e.info(), nil) {
				return
			}
		}
	}
}
