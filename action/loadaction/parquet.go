package loadaction

import (
	"bufio"
	"errors"
	"io"
	"os"
	"strings"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"github.com/pawlhq/pawl/event"
)

// parquet uses a temporary file, because a Parquet file is read from its end.
func (l *loader) parquet(in io.Reader) (_ *content, err error) {
	tmp, err := tempFile()
	if err != nil {
		return nil, err
	}
	drop := func() { _ = tmp.Close() } // deletes the file, which has no name
	defer func() {
		if err != nil {
			drop()
		}
	}()
	size, err := io.Copy(tmp, in)
	if err != nil {
		return nil, err
	}
	var f *parquet.File
	if err := recoverDamage(func() error {
		f, err = parquet.OpenFile(tmp, size, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
		return err
	}); err != nil {
		return nil, invalidFile("the file is not a Parquet file, or is damaged: %w", err)
	}
	if err := l.checkSize(f); err != nil {
		return nil, err
	}
	c := &content{where: "its schema", options: "FORMAT text", line: "row", close: drop}
	var types []parquet.Type
	for _, path := range f.Schema().Columns() {
		leaf, _ := f.Schema().Lookup(path...)
		if len(path) > 1 || leaf.MaxRepetitionLevel > 0 {
			return nil, invalidFile("the column %s is nested: only plain columns can be loaded", event.Quote(truncate(strings.Join(path, "."))))
		}
		if d, ok := logicalType(leaf.Node.Type()).(*format.DecimalType); ok && (d.Scale < 0 || d.Scale > maxScale) {
			return nil, invalidFile("the decimal column %s has the scale %d: at most %d can be loaded", event.Quote(truncate(path[0])), d.Scale, maxScale)
		}
		c.names = append(c.names, path[0])
		types = append(types, leaf.Node.Type())
	}
	c.write = func(w io.Writer, to *target) error {
		texts := make([]textFunc, len(types))
		for i, t := range types {
			texts[i] = textOf(t, to.columns[i].kind == "bytea")
		}
		out := bufio.NewWriterSize(w, 64<<10)
		if err := l.writeRows(out, f, texts, to.source); err != nil {
			return err
		}
		return out.Flush()
	}
	return c, nil
}

// A file without a name does not survive a crash.
func tempFile() (*os.File, error) {
	f, err := os.CreateTemp("", "pawl-parquet-")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func (l *loader) checkSize(f *parquet.File) error {
	var size int64
	for _, g := range f.Metadata().RowGroups {
		if size += max(g.TotalByteSize, 0); size > l.MaxBytes || size < 0 {
			return tooLarge(l.MaxBytes)
		}
	}
	return nil
}

// writeRows limits its output, because a file may store one value for all its rows.
func (l *loader) writeRows(w io.Writer, f *parquet.File, texts []textFunc, source string) error {
	first := appendCopyValue(nil, source)
	remaining := l.MaxBytes
	var out []byte
	var rows int64
	put := func(row parquet.Row) (err error) {
		rows++
		if out, err = appendRow(append(out[:0], first...), row, texts, remaining); err != nil {
			return invalidFile("row %d: %w", rows, err)
		}
		if remaining -= int64(len(out) - len(first)); remaining < 0 {
			return tooLarge(l.MaxBytes)
		}
		_, err = w.Write(out)
		return err
	}
	for _, g := range f.RowGroups() {
		if g.NumRows() == 0 {
			continue // pandas writes empty groups without pages
		}
		if err := eachRow(g, put); err != nil {
			return err
		}
	}
	if rows != f.NumRows() {
		return invalidFile("the file is damaged: it has %d rows instead of %d", rows, f.NumRows())
	}
	return nil
}

func eachRow(g parquet.RowGroup, f func(parquet.Row) error) (err error) {
	rows := g.Rows()
	defer func() { err = errors.Join(err, rows.Close()) }()
	batch := make([]parquet.Row, 64)
	for {
		n, err := rows.ReadRows(batch)
		for _, row := range batch[:n] {
			if err := f(row); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return invalidFile("the file is damaged: %w", err)
		}
	}
}

// appendRow cuts a row of more than maxBytes bytes.
func appendRow(to []byte, row parquet.Row, texts []textFunc, maxBytes int64) ([]byte, error) {
	for _, v := range row {
		switch to = append(to, '\t'); {
		case v.IsNull():
			to = append(to, `\N`...)
		case int64(len(to)) <= maxBytes:
			s, err := texts[v.Column()](v)
			if err != nil {
				return nil, err
			}
			to = appendCopyValue(to, s)
		}
	}
	return append(to, '\n'), nil
}
