package inventory

import (
	"bufio"
	"compress/gzip"
	"encoding/csv"
	"fmt"
	"io"
	"net/url"
	"os"
	"strconv"
	"time"

	"github.com/pawlhq/pawl/event"
)

func (m *manifest) readCSV(f *os.File, yield func(*row) error) error {
	z, err := gzip.NewReader(bufio.NewReaderSize(f, 64<<10))
	if err != nil {
		return err
	}
	return m.csvRows(z, yield)
}

func (m *manifest) csvRows(text io.Reader, yield func(*row) error) error {
	c := csv.NewReader(text)
	c.ReuseRecord = true
	c.FieldsPerRecord = len(m.columns)
	at := m.columnIndexes()
	for {
		fields, err := c.Read()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("it does not match fileSchema, which has %d columns: %w", len(m.columns), err)
		}
		r, err := at.row(fields)
		if err != nil {
			line, _ := c.FieldPos(0)
			return fmt.Errorf("line %d: %w", line, err)
		}
		if err := yield(&r); err != nil {
			return err
		}
	}
}

// The index of a missing column is -1.
type columnIndexes struct{ bucket, key, latest, marker, size, modified, etag int }

func (m *manifest) columnIndexes() columnIndexes {
	return columnIndexes{
		m.index(bucketColumn), m.index(keyColumn), m.index(latestColumn), m.index(markerColumn),
		m.index(sizeColumn), m.index(modifiedColumn), m.index(etagColumn),
	}
}

// row parses the fields of a line. In the URL-encoded key, a plus sign stands for a space.
func (p columnIndexes) row(fields []string) (r row, err error) {
	r = row{bucket: fields[p.bucket], etag: fields[p.etag]}
	if r.key, err = url.QueryUnescape(fields[p.key]); err != nil {
		return row{}, fmt.Errorf("the key %s is not URL-encoded: %w", event.Quote(fields[p.key]), err)
	}
	latest, err := parseBool(fields, p.latest, true)
	if err != nil {
		return row{}, err
	}
	r.old = !latest
	if r.marker, err = parseBool(fields, p.marker, false); err != nil || r.marker {
		return r, err // a delete marker has no size
	}
	if r.size, err = strconv.ParseInt(fields[p.size], 10, 64); err != nil {
		return row{}, fmt.Errorf("the size %s is not a number", event.Quote(fields[p.size]))
	}
	if r.modified, err = time.Parse(time.RFC3339, fields[p.modified]); err != nil {
		return row{}, fmt.Errorf("the time %s does not have the format %s", event.Quote(fields[p.modified]), time.RFC3339)
	}
	return r, nil
}

func parseBool(fields []string, at int, otherwise bool) (bool, error) {
	if at < 0 {
		return otherwise, nil
	}
	v, err := strconv.ParseBool(fields[at])
	if err != nil {
		err = fmt.Errorf("%s is neither true nor false", event.Quote(fields[at]))
	}
	return v, err
}
