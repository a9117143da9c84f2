package loadaction

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/pawlhq/pawl"
)

// records reads lines of bounded length, or CSV records, whose quoted values may contain line
// breaks.
type records struct {
	in       *bufio.Reader
	maxBytes int
	csv      bool
	line     int
	lines    int
	state    quoteState
	quote    int
	buf      []byte
}

type quoteState uint8

const (
	valueStart quoteState = iota
	unquoted
	quoted
	closingQuote // it ends the value, or is the first of two quotes
)

func newRecords(r io.Reader, maxBytes int, csv bool) *records {
	in := bufio.NewReaderSize(r, 64<<10)
	if mark, _ := in.Peek(3); string(mark) == "\uFEFF" { // next returns the same error
		_, _ = in.Discard(3)
	}
	return &records{in: in, maxBytes: maxBytes, csv: csv}
}

// next returns a record with its line ending, if any. It is valid until the next call.
func (r *records) next() ([]byte, error) {
	r.buf, r.line, r.state = r.buf[:0], r.lines+1, valueStart
	for {
		piece, err := r.in.ReadSlice('\n')
		r.buf = append(r.buf, piece...)
		if r.csv {
			if err := r.scan(piece); err != nil {
				return nil, err
			}
		}
		switch {
		case len(r.buf) > r.maxBytes && r.state == quoted:
			return nil, invalidFile("line %d: a quoted value has no end within %d bytes: close the quote, or raise max_line", r.quote, r.maxBytes)
		case len(r.buf) > r.maxBytes:
			return nil, invalidFile("line %d is longer than %d bytes: check the format of the file, or raise max_line", r.line, r.maxBytes)
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err == io.EOF && len(r.buf) == 0:
			return nil, io.EOF
		case err == io.EOF && r.state == quoted:
			return nil, invalidFile("line %d: a quoted value has no end", r.quote)
		case err != nil && err != io.EOF:
			return nil, err
		}
		r.lines++
		if r.state != quoted || err == io.EOF {
			return r.buf, nil
		}
	}
}

// scan rejects misplaced quotes. PostgreSQL accepts them, and two would turn all lines between
// them into one value.
func (r *records) scan(piece []byte) error {
	whole := r.state == valueStart && bytes.HasSuffix(piece, []byte("\n"))
	if (whole || r.state == quoted) && bytes.IndexByte(piece, '"') < 0 {
		return nil // fast path
	}
	for _, c := range piece {
		switch {
		case r.state == quoted:
			if c == '"' {
				r.state = closingQuote
			}
		case c == '"' && r.state == unquoted:
			return invalidFile("line %d: a quote in a value that does not begin with one: put the value in quotes, and double each quote inside", r.lines+1)
		case c == '"':
			if r.state == valueStart {
				r.quote = r.lines + 1
			}
			r.state = quoted
		case c == ',' || c == '\n':
			r.state = valueStart
		case r.state == valueStart:
			r.state = unquoted
		case r.state == closingQuote && c != '\r':
			return invalidFile("line %d: text after the closing quote of a value: double each quote inside a quoted value", r.lines+1)
		}
	}
	return nil
}

func trimLineEnding(record []byte) []byte {
	return bytes.TrimSuffix(bytes.TrimSuffix(record, []byte("\n")), []byte("\r"))
}

// Empty lines are allowed only at the end.
func (r *records) each(f func(record []byte) error) error {
	emptyLine := 0
	for {
		record, err := r.next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		isEmpty := len(trimLineEnding(record)) == 0
		switch {
		case isEmpty && emptyLine == 0:
			emptyLine = r.line
		case isEmpty:
		case emptyLine > 0:
			return invalidFile("line %d is empty", emptyLine)
		default:
			if err := f(record); err != nil {
				return err
			}
		}
	}
}

func invalidFile(format string, args ...any) error {
	return pawl.Permanent(fmt.Errorf(format, args...))
}

func truncate(s string) string {
	const maxLen = 200
	if len(s) > maxLen {
		s = s[:maxLen] + "…"
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

func appendCopyValue(to []byte, s string) []byte {
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
