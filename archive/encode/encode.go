package encode

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/pawlhq/pawl/archive"
)

// ErrDamaged says that what was read is not what [Encode] writes.
var ErrDamaged = errors.New("damaged object")

// Encode writes entries of a shard. It refuses an entry that [Decode] would give
// back otherwise: w then holds part of an object. Beside the entries it needs at
// most a few MiB, and for Parquet what it has compressed.
func Encode(w io.Writer, f Format, shard string, records []archive.Record) error {
	if _, err := Parse(string(f)); err != nil {
		return err
	}
	layout, compression := f.split()
	rows := rowsOfAll(shard, records)
	if layout == "parquet" {
		return writeParquet(w, compression, rows)
	}
	out, err := compressor(w, compression)
	if err != nil {
		return err
	}
	buf := bufio.NewWriterSize(out, 64<<10)
	err = writeNDJSON(buf, rows)
	return errors.Join(err, buf.Flush(), out.Close())
}

func rowsOfAll(shard string, records []archive.Record) iter.Seq2[row, error] {
	return func(yield func(row, error) bool) {
		for _, e := range records {
			for r, err := range rowsOf(shard, e) {
				if !yield(r, err) || err != nil {
					return
				}
			}
		}
	}
}

// Decode reads the entries of a shard in the order in which they were written.
// After an error it ends: [ErrDamaged], or that of r, whose bytes are read as the
// entries are asked for. Parquet is kept in memory whole, of the other formats one
// record.
func Decode(r io.Reader, f Format, shard string) iter.Seq2[archive.Record, error] {
	return func(yield func(archive.Record, error) bool) {
		src := &errorTracker{r: r}
		for e, err := range recordsOf(shard, src.rows(f)) {
			switch {
			case err == nil:
			case src.err != nil:
				err = fmt.Errorf("reading an object in format %s: %w", f, src.err)
			default:
				err = fmt.Errorf("%w in format %s: %w", ErrDamaged, f, err)
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// source remembers what went wrong in reading, to tell it from wrong bytes.
type errorTracker struct {
	r   io.Reader
	err error
}

// Read implements [io.Reader].
func (s *errorTracker) Read(b []byte) (int, error) {
	n, err := s.r.Read(b)
	if err != nil && err != io.EOF {
		s.err = err
	}
	return n, err
}

func (s *errorTracker) rows(f Format) iter.Seq2[row, error] {
	if _, err := Parse(string(f)); err != nil {
		return func(yield func(row, error) bool) { yield(row{}, err) }
	}
	layout, compression := f.split()
	if layout == "parquet" {
		return readParquet(s)
	}
	return func(yield func(row, error) bool) {
		in, err := decompressor(s, compression)
		if err != nil {
			yield(row{}, err)
			return
		}
		defer in.Close()
		for r, err := range readNDJSON(in) {
			if !yield(r, err) {
				return
			}
		}
	}
}

func compressor(w io.Writer, compression string) (io.WriteCloser, error) {
	switch compression {
	case "gz":
		return gzip.NewWriter(w), nil
	case "zst":
		return zstd.NewWriter(w, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20))
	default:
		return nopCloser{w}, nil
	}
}

// plain ends with what it writes to, and not before.
type nopCloser struct{ io.Writer }

// Close implements [io.Closer].
func (nopCloser) Close() error { return nil }

func decompressor(r io.Reader, compression string) (io.ReadCloser, error) {
	switch compression {
	case "gz":
		return gzip.NewReader(r)
	case "zst":
		d, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(64<<20))
		if err != nil {
			return nil, err
		}
		return d.IOReadCloser(), nil
	default:
		return io.NopCloser(r), nil
	}
}
