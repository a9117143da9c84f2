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

const readBuffer = 64 << 10

// values keeps one value in memory.
type values struct {
	dec    *jsontext.Decoder
	base   int64 // where dec started in the input, at the start of a line
	window *window
	path   string
	line   int64 // of the byte after the last value
	number int64 // of the last value
	space  int   // white space before the last value, in bytes
}

func newValues(r io.Reader, path string) *values {
	w := &window{r: bufio.NewReaderSize(r, readBuffer)}
	return &values{dec: newDecoder(w), window: w, path: path, line: 1}
}

// The parser checks names and text.
func newDecoder(w *window) *jsontext.Decoder {
	return jsontext.NewDecoder(w, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

func (v *values) offset() int64 { return v.base + v.dec.InputOffset() }

// read is the number of bytes read from the input: all of them after io.EOF.
func (v *values) read() int64 { return v.window.read }

// next returns the next value, which is valid until the next call, and its position. At the end, it returns
// io.EOF; other errors are an [*InputError]. After an error, next may only be called after skipLine.
func (v *values) next() ([]byte, position, error) {
	v.window.end = v.offset() + event.MaxPayload
	v.dec.PeekKind() // reads up to the value; ReadValue returns the error
	ahead := v.dec.UnreadBuffer()
	space := len(ahead) - len(bytes.TrimLeft(ahead, " \t\r\n"))
	v.line += newlines(ahead[:space])
	v.number++
	v.space = space
	at := position{Path: v.path, Line: v.line, Offset: v.offset() + int64(space), Number: v.number}

	line := space < len(ahead) && (at.Offset == v.base || space > 0 && ahead[space-1] == '\n')

	v.window.end = at.Offset + event.MaxPayload + 1 // one byte too many: the parser rejects the value
	value, err := v.dec.ReadValue()
	if err != nil {
		return nil, at, v.describeError(err, at, line)
	}
	v.line += newlines(value)
	return value, at, nil
}

// If line is set, the value starts a line. Only a fault in the content can be skipped, not a failed read.
func (v *values) describeError(err error, at position, line bool) error {
	var syntax *jsontext.SyntacticError
	rest := v.dec.UnreadBuffer()
	rest = rest[min(v.space, len(rest)):]
	switch {
	case err == io.EOF:
		return err
	case at.Offset == 0 && bytes.HasPrefix(rest, gzipMagic):
		return &InputError{position: at, Err: errGzip}
	case errors.Is(err, errTooLarge):
	case errors.Is(err, io.ErrUnexpectedEOF):
		err = fmt.Errorf("the input ends within the payload: %w", io.ErrUnexpectedEOF)
	case errors.As(err, &syntax):
		fault := max(at.Offset, v.base+syntax.ByteOffset)
		at.Line += newlines(rest[:min(fault-at.Offset, int64(len(rest)))])
		at.Offset = fault
		err = fmt.Errorf("not JSON: %w", syntax.Err)
	default:
		return &InputError{position: at, Err: err}
	}
	if !line {
		err = fmt.Errorf("%w; it does not start on a new line, so it cannot be skipped", err)
	}
	return &InputError{position: at, Skippable: line, Err: err}
}

func newlines(b []byte) int64 { return int64(bytes.Count(b, []byte{'\n'})) }

var gzipMagic = []byte{0x1f, 0x8b}

var errGzip = errors.New("the input is compressed: decompress it with zcat, and name \"-\" for standard input")

var errTooLarge = fmt.Errorf("%w: more than %d bytes", event.ErrTooLarge, event.MaxPayload)
