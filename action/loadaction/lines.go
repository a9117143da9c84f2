package loadaction

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/event"
)

// records reads records of lines, each of a bounded length. A record of CSV may have
// several lines: a quoted value may break them.
type records struct {
	in     *bufio.Reader
	most   int
	quotes bool // they keep lines together
	line   int  // on which the last record begins
	lines  int  // so far
	buf    []byte
}

func newRecords(r io.Reader, most int, quotes bool) *records {
	return &records{in: bufio.NewReaderSize(r, 64<<10), most: most, quotes: quotes}
}

// next returns the next record with its line ending, valid until the call after; io.EOF
// after the last. The last may lack its ending.
func (r *records) next() ([]byte, error) {
	r.buf, r.line = r.buf[:0], r.lines+1
	quoted := false
	for {
		piece, err := r.in.ReadSlice('\n')
		r.buf = append(r.buf, piece...)
		if len(r.buf) > r.most {
			return nil, wrong("line %d is longer than %d bytes: is this file what it should be? Else raise max_line", r.line, r.most)
		}
		if r.quotes && bytes.Count(piece, []byte{'"'})%2 == 1 {
			quoted = !quoted
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err == io.EOF && len(r.buf) == 0:
			return nil, io.EOF
		case err == io.EOF && quoted:
			return nil, wrong("line %d: a quoted value has no end", r.line)
		case err != nil && err != io.EOF:
			return nil, err
		}
		r.lines++
		if !quoted || err == io.EOF {
			return r.buf, nil
		}
	}
}

// text is a record without its line ending.
func text(record []byte) []byte {
	return bytes.TrimSuffix(bytes.TrimSuffix(record, []byte("\n")), []byte("\r"))
}

// each calls f with every record that follows. Empty lines may stand at the end.
func (r *records) each(f func(record []byte) error) error {
	empty := 0
	for {
		record, err := r.next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		nothing := len(text(record)) == 0
		switch {
		case nothing && empty == 0:
			empty = r.line
		case nothing:
		case empty > 0:
			return wrong("line %d is empty", empty)
		default:
			if err := f(record); err != nil {
				return err
			}
		}
	}
}

// wrong is a failure that lies with the file.
func wrong(format string, args ...any) error { return pawl.Permanent(fmt.Errorf(format, args...)) }

// known checks the names of a file's columns against the table's.
func (l *loader) known(names []string, where string) error {
	for i, name := range names {
		switch {
		case name == l.Source:
			return wrong("%s: the column %s is Pawl's own: the file must not have it", where, event.Quote(name))
		case slices.Contains(names[:i], name):
			return wrong("%s: the column %s is there twice", where, event.Quote(name))
		case !slices.ContainsFunc(l.columns, func(c column) bool { return c.name == name }):
			return wrong("%s: the table %s has no column %s: it has %s", where, l.Table, event.Quote(clip(name)), l.list())
		}
	}
	return nil
}

func (l *loader) list() string {
	var names []string
	for _, c := range l.columns {
		names = append(names, c.name)
	}
	return clip(strings.Join(names, ", "))
}

// clip bounds what is said of a file's content.
func clip(s string) string {
	const most = 200
	if len(s) > most {
		s = s[:most] + "…"
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// value writes a value as COPY's text format has it.
func value(to []byte, s string) []byte {
	for i := range len(s) {
		switch c := s[i]; c {
		case '\\':
			to = append(to, `\\`...)
		case '\n':
			to = append(to, `\n`...)
		case '\r':
			to = append(to, `\r`...)
		case '\t':
			to = append(to, `\t`...)
		default:
			to = append(to, c)
		}
	}
	return to
}
