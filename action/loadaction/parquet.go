package loadaction

import (
	"bufio"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/big"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"github.com/pawlhq/pawl/event"
)

// parquet keeps the file in a temporary one, for it is read from its end.
func (l *loader) parquet(in io.Reader) (_ *content, err error) {
	tmp, err := os.CreateTemp("", "pawl-parquet-")
	if err != nil {
		return nil, err
	}
	drop := func() { _ = errors.Join(tmp.Close(), os.Remove(tmp.Name())) } // a leftover of the system's to clean up
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
	if err := undamaged(func() error {
		f, err = parquet.OpenFile(tmp, size, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
		return err
	}); err != nil {
		return nil, wrong("it is no Parquet file, or damaged: %w", err)
	}
	if err := l.fits(f); err != nil {
		return nil, err
	}
	c := &content{options: "FORMAT text", line: "row", close: drop}
	var texts []func(parquet.Value) string
	for _, path := range f.Schema().Columns() {
		leaf, _ := f.Schema().Lookup(path...)
		if len(path) > 1 || leaf.MaxRepetitionLevel > 0 {
			return nil, wrong("the column %s is nested: only plain columns can be loaded", event.Quote(clip(strings.Join(path, "."))))
		}
		c.columns = append(c.columns, path[0])
		texts = append(texts, textOf(leaf.Node.Type()))
	}
	if err := l.known(c.columns, "its schema"); err != nil {
		return nil, err
	}
	c.write = func(to io.Writer, source string) error {
		w := bufio.NewWriterSize(to, 64<<10)
		if err := l.writeRows(w, f, texts, source); err != nil {
			return err
		}
		return w.Flush()
	}
	return c, nil
}

// fits refuses a file that says of itself that it is too large, unpacked.
func (l *loader) fits(f *parquet.File) error {
	var size int64
	for _, g := range f.Metadata().RowGroups {
		if size += max(g.TotalByteSize, 0); size > l.MaxBytes || size < 0 {
			return tooLarge(l.MaxBytes)
		}
	}
	return nil
}

// writeRows counts what it writes: a value that is in the file once may be one of
// every row.
func (l *loader) writeRows(to io.Writer, f *parquet.File, texts []func(parquet.Value) string, source string) error {
	first := value(nil, source)
	batch := make([]parquet.Row, 64)
	left := l.MaxBytes
	var out []byte
	put := func(row parquet.Row) error {
		out = appendRow(append(out[:0], first...), row, texts, left)
		if left -= int64(len(out) - len(first)); left < 0 {
			return tooLarge(l.MaxBytes)
		}
		_, err := to.Write(out)
		return err
	}
	for _, g := range f.RowGroups() {
		rows := g.Rows()
		for {
			n, err := rows.ReadRows(batch)
			for _, row := range batch[:n] {
				if err := put(row); err != nil {
					return errors.Join(err, rows.Close())
				}
			}
			if err == io.EOF {
				break
			}
			if err != nil {
				return errors.Join(wrong("it is damaged: %w", err), rows.Close())
			}
		}
		if err := rows.Close(); err != nil {
			return err
		}
	}
	return nil
}

// appendRow appends a row as COPY's text format has it. What is longer than most bytes
// may lack its end.
func appendRow(to []byte, row parquet.Row, texts []func(parquet.Value) string, most int64) []byte {
	for _, v := range row {
		switch to = append(to, '\t'); {
		case v.IsNull():
			to = append(to, `\N`...)
		case int64(len(to)) <= most:
			to = value(to, texts[v.Column()](v))
		}
	}
	return append(to, '\n')
}

// textOf returns how the values of a type are written.
func textOf(t parquet.Type) func(parquet.Value) string {
	if l := t.LogicalType(); l != nil {
		switch l := l.Value.(type) {
		case *format.StringType, *format.EnumType, *format.JsonType:
			return func(v parquet.Value) string { return string(v.ByteArray()) }
		case *format.DecimalType:
			return func(v parquet.Value) string { return decimal(v, int(l.Scale)) }
		case *format.DateType:
			return func(v parquet.Value) string { return time.Unix(int64(v.Int32())*86400, 0).UTC().Format(time.DateOnly) }
		case *format.TimestampType:
			layout := "2006-01-02T15:04:05.999999999"
			if l.IsAdjustedToUTC {
				layout += "Z"
			}
			return func(v parquet.Value) string { return instant(v.Int64(), l.Unit).Format(layout) }
		case *format.TimeType:
			return func(v parquet.Value) string {
				n := v.Int64()
				if v.Kind() == parquet.Int32 {
					n = int64(v.Int32())
				}
				return instant(n, l.Unit).Format("15:04:05.999999999")
			}
		case *format.UUIDType:
			return func(v parquet.Value) string {
				id, _ := uuid.FromBytes(v.ByteArray()) // of 16 bytes, or the server refuses it
				return id.String()
			}
		case *format.IntType:
			if !l.IsSigned {
				return unsigned
			}
		}
	}
	return func(v parquet.Value) string {
		switch v.Kind() {
		case parquet.ByteArray, parquet.FixedLenByteArray:
			return `\x` + hex.EncodeToString(v.ByteArray())
		}
		return v.String()
	}
}

func unsigned(v parquet.Value) string {
	if v.Kind() == parquet.Int32 {
		return strconv.FormatUint(uint64(uint32(v.Int32())), 10)
	}
	return strconv.FormatUint(uint64(v.Int64()), 10)
}

// instant is a time since 1970.
func instant(n int64, unit format.TimeUnit) time.Time {
	switch unit.Value.(type) {
	case *format.MilliSeconds:
		return time.UnixMilli(n).UTC()
	case *format.MicroSeconds:
		return time.UnixMicro(n).UTC()
	}
	return time.Unix(0, n).UTC()
}

// decimal is an integer with a point in it. Bytes are big-endian two's complement.
func decimal(v parquet.Value, scale int) string {
	n := new(big.Int)
	switch v.Kind() {
	case parquet.Int32:
		n.SetInt64(int64(v.Int32()))
	case parquet.Int64:
		n.SetInt64(v.Int64())
	default:
		b := v.ByteArray()
		n.SetBytes(b)
		if len(b) > 0 && b[0]&0x80 != 0 {
			n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
		}
	}
	return fmt.Sprintf("%se-%d", n, scale)
}
