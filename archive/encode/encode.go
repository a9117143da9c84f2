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

// ErrDamaged is returned for an object that [Encode] did not write.
var ErrDamaged = errors.New("damaged object")

// Encode writes records of a shard. It returns an error for a record that [Decode] would not return
// unchanged; w may then have a part of the object. For Parquet, it keeps the object in memory.
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

// Decode yields the records of a shard in order. It yields at most one error: [ErrDamaged], or an
// error of r. For Parquet it keeps the whole object in memory.
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

// errorTracker distinguishes a failed read from a damaged object.
type errorTracker struct {
	r   io.Reader
	err error
}

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

type nopCloser struct{ io.Writer }

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
