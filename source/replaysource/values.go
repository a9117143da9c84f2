package replaysource

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pawlhq/pawl/event"
)

// readBuffer is how much is asked of an input at once, in bytes.
const readBuffer = 64 << 10

// values cuts an input into its JSON values, holding one at a time.
type values struct {
	dec    *jsontext.Decoder
	window *window
	path   string
	line   int64 // of the byte after the last value
	number int64 // of the last value
}

func newValues(r io.Reader, path string) *values {
	w := &window{r: bufio.NewReaderSize(r, readBuffer)}
	// Names and text are the parser's to judge: what it refuses can be
	// skipped.
	dec := jsontext.NewDecoder(w, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	return &values{dec: dec, window: w, path: path, line: 1}
}

// offset is where the last value ended.
func (v *values) offset() int64 { return v.dec.InputOffset() }

// read is how much of the input was asked for: all of it after io.EOF.
func (v *values) read() int64 { return v.window.read }

// next returns the next value, which is valid until next is called again, and
// where it begins. At the end of the input the error is io.EOF; any other is an
// [*InputError], and there is no next.
func (v *values) next() ([]byte, place, error) {
	v.window.end = v.dec.InputOffset() + event.MaxPayload
	v.dec.PeekKind() // reads up to the value; ReadValue returns its error
	ahead := v.dec.UnreadBuffer()
	space := len(ahead) - len(bytes.TrimLeft(ahead, " \t\r\n"))
	v.line += newlines(ahead[:space])
	v.number++
	at := place{Path: v.path, Line: v.line, Offset: v.dec.InputOffset() + int64(space), Number: v.number}

	v.window.end = at.Offset + event.MaxPayload + 1
	value, err := v.dec.ReadValue()
	if err == nil && len(value) > event.MaxPayload {
		err = errTooLarge
	}
	if err != nil {
		return nil, at, v.explain(err, at, space)
	}
	v.line += newlines(value)
	return value, at, nil
}

// explain says where in the value that begins at, after space, the fault is.
func (v *values) explain(err error, at place, space int) error {
	var syntax *jsontext.SyntacticError
	switch {
	case err == io.EOF:
		return err
	case errors.Is(err, io.ErrUnexpectedEOF):
		err = fmt.Errorf("the input ends in the middle of it: %w", io.ErrUnexpectedEOF)
	case errors.As(err, &syntax):
		if rest := v.dec.UnreadBuffer(); space <= len(rest) {
			rest = rest[space:]
			at.Line += newlines(rest[:min(max(syntax.ByteOffset-at.Offset, 0), int64(len(rest)))])
		}
		at.Offset = max(at.Offset, syntax.ByteOffset)
		err = fmt.Errorf("not JSON: %w", syntax.Err)
	}
	return &InputError{place: at, Err: err}
}

func newlines(b []byte) int64 { return int64(bytes.Count(b, []byte{'\n'})) }

var errTooLarge = fmt.Errorf("%w: more than %d bytes", event.ErrTooLarge, event.MaxPayload)

// window is a reader that goes no further than end: a decoder in front of it
// cannot hold more of a value than that.
type window struct {
	r    io.Reader
	read int64
	end  int64
}

func (w *window) Read(p []byte) (int, error) {
	if w.read >= w.end {
		return 0, errTooLarge
	}
	n, err := w.r.Read(p[:min(int64(len(p)), w.end-w.read)])
	w.read += int64(n)
	return n, err
}
