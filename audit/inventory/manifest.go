package inventory

import (
	"context"
	"crypto/md5"
	"encoding/hex"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/pawlhq/pawl/event"
)

// https://docs.aws.amazon.com/AmazonS3/latest/userguide/storage-inventory-location.html
type manifest struct {
	SourceBucket string  `json:"sourceBucket"`
	Version      string  `json:"version"`
	Created      string  `json:"creationTimestamp"` // Unix milliseconds
	Format       string  `json:"fileFormat"`
	Schema       string  `json:"fileSchema"`
	Parts        *[]part `json:"files"`

	created time.Time
	columns []string // CSV names
}

type part struct {
	Key  string `json:"key"`
	Size int64  `json:"size"`
	MD5  string `json:"MD5checksum"`
}

const (
	manifestVersion = "2016-11-30"
	maxManifest     = 256 << 20 // a million data files
	// Large downloads may fail.
	fetchTries = 3
	maxScan    = 48 * time.Hour
	// folderTime is the format of the folder name, which is the report's creation time.
	folderTime = "2006-01-02T15-04Z"
)

func readManifest(ctx context.Context, get files, name string) (*manifest, error) {
	text, err := get.readAll(ctx, name, maxManifest)
	if err != nil {
		return nil, err
	}
	said, err := get.readAll(ctx, strings.TrimSuffix(name, path.Base(name))+"manifest.checksum", 1024)
	if err != nil {
		return nil, fmt.Errorf("manifest.checksum in the same folder, which S3 writes last: %w", err)
	}
	sum := md5.Sum(text)
	if got, want := hex.EncodeToString(sum[:]), strings.TrimSpace(string(said)); !strings.EqualFold(got, want) {
		return nil, fmt.Errorf("its MD5 is %s, but manifest.checksum says %s: one of the two files is damaged or belongs to another report", got, event.Quote(want))
	}
	return parseManifest(text)
}

func parseManifest(text []byte) (*manifest, error) {
	m := new(manifest)
	if err := json.Unmarshal(text, m); err != nil {
		return nil, fmt.Errorf("not the manifest of an inventory: %w", err)
	}
	ms, err := strconv.ParseInt(m.Created, 10, 64)
	switch {
	case m.Version != manifestVersion:
		return nil, fmt.Errorf("its version is %s: only %s is supported", event.Quote(m.Version), manifestVersion)
	case m.SourceBucket == "":
		return nil, errors.New("sourceBucket is missing")
	case err != nil || ms <= 0:
		return nil, fmt.Errorf("its creationTimestamp %s is not a Unix time in milliseconds", event.Quote(m.Created))
	case m.Parts == nil:
		return nil, errors.New("the list of files is missing")
	}
	m.created = time.UnixMilli(ms).UTC()
	if err := m.checkParts(); err != nil {
		return nil, err
	}
	m.columns, err = columnsOf(m.Format, m.Schema)
	return m, err
}

func (m *manifest) checkParts() error {
	seen := make(map[string]bool)
	for _, p := range *m.Parts {
		switch {
		case p.Key == "" || p.Size < 0:
			return fmt.Errorf("it lists a file %s of %d bytes", event.Quote(p.Key), p.Size)
		case seen[p.Key]:
			return fmt.Errorf("it lists the file %s twice", event.Quote(p.Key))
		}
		seen[p.Key] = true
	}
	return nil
}

// checkExpected also compares the manifest with the name of its folder.
func (m *manifest) checkExpected(want Expect, folder string) error {
	const format = "2006-01-02 15:04 UTC"
	named, err := time.Parse(folderTime, folder)
	switch {
	case want.Bucket != "" && m.SourceBucket != want.Bucket:
		return fmt.Errorf("it lists bucket %s, not %s: use the inventory of that bucket", event.Quote(m.SourceBucket), event.Quote(want.Bucket))
	case err == nil && !named.Equal(m.created.Truncate(time.Minute)):
		return fmt.Errorf("its manifest says that it was created %s, but its folder says %s: the manifest belongs to another report", m.created.Format(format), named.Format(format))
	case m.created.Before(want.NotBefore):
		return fmt.Errorf("it was created %s, before %s: use a newer report", m.created.Format(format), want.NotBefore.UTC().Format(format))
	}
	return nil
}

func (m *manifest) read(ctx context.Context, get files, s *sorter) error {
	for _, p := range *m.Parts {
		if err := m.readPart(ctx, get, p, s); err != nil {
			return fmt.Errorf("file %s: %w", event.Quote(p.Key), err)
		}
	}
	return s.finish(ctx)
}

func (m *manifest) readPart(ctx context.Context, get files, p part, s *sorter) error {
	f, err := get.fetch(ctx, p, s.dir)
	for try := 1; err != nil && try < fetchTries && ctx.Err() == nil; try++ {
		f, err = get.fetch(ctx, p, s.dir)
	}
	if err != nil {
		return err
	}
	defer f.Close()
	rows := m.readCSV
	if m.Format == formatParquet {
		rows = m.readParquet
	}
	n := 0
	return rows(f, func(r *row) error {
		n++
		e, current, err := m.entry(r)
		if err != nil {
			return fmt.Errorf("row %d: %w", n, err)
		}
		if err := ctx.Err(); err != nil || !current {
			return err
		}
		return s.add(ctx, e)
	})
}

type row struct {
	bucket, key, etag string
	old, marker       bool // old: not the latest version; marker: a delete marker
	size              int64
	modified          time.Time
}

// Limits in bytes. S3 permits no longer keys.
const (
	maxKey  = 1024
	maxETag = 256
)

func (m *manifest) entry(r *row) (e entry, current bool, err error) {
	switch {
	case r.bucket != m.SourceBucket:
		err = fmt.Errorf("it belongs to bucket %s, but the report lists %s", event.Quote(r.bucket), event.Quote(m.SourceBucket))
	case r.key == "" || len(r.key) > maxKey:
		err = fmt.Errorf("the key has %d bytes, want 1 to %d", len(r.key), maxKey)
	case r.old || r.marker:
		return entry{}, false, nil
	case r.etag == "" || len(r.etag) > maxETag || r.size < 0 || r.modified.IsZero():
		err = fmt.Errorf("%s has no valid ETag, Size or LastModifiedDate", event.Quote(r.key))
	case r.modified.After(m.created.Add(maxScan)):
		err = fmt.Errorf("%s was modified %s, but the report was created %s: the manifest belongs to another report", event.Quote(r.key),
			r.modified.UTC().Format(time.RFC3339), m.created.Format(time.RFC3339))
	}
	return entry{key: r.key, etag: strings.Trim(r.etag, `"`), modified: r.modified.UnixMilli(), size: r.size}, true, err
}

func (m *manifest) index(name string) int { return slices.Index(m.columns, name) }
