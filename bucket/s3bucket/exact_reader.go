package s3bucket

import (
	"errors"
	"fmt"
	"io"
)

// exactReader fails before the last byte if the body has another length. The store then rejects
// the truncated request, instead of storing wrong content.
type exactReader struct {
	r    io.Reader
	size int64
	left int64
}

var errLength = errors.New("the length of the body differs from the declared size")

func newExactReader(r io.Reader, size int64) *exactReader {
	return &exactReader{r: r, size: size, left: size}
}

// Read implements [io.Reader].
func (e *exactReader) Read(p []byte) (int, error) {
	if e.left == 0 {
		return 0, io.EOF
	}
	if int64(len(p)) > e.left {
		p = p[:e.left]
	}
	n, err := e.r.Read(p)
	e.left -= int64(n)
	switch {
	case e.left == 0:
		if longer := expectEOF(e.r); longer != nil {
			return 0, longer
		}
		return n, nil
	case errors.Is(err, io.EOF):
		return n, fmt.Errorf("%w: it ends %d bytes before the declared %d: %w", errLength, e.left, e.size, io.ErrUnexpectedEOF)
	}
	return n, err
}

func expectEOF(r io.Reader) error {
	var probe [1]byte
	if _, err := io.ReadFull(r, probe[:]); err == nil {
		return fmt.Errorf("%w: it is longer", errLength)
	} else if !errors.Is(err, io.EOF) {
		return fmt.Errorf("reading the end of the body: %w", err)
	}
	return nil
}

func remaining(s io.Seeker) (int64, error) {
	at, err := s.Seek(0, io.SeekCurrent)
	if err != nil {
		return 0, err
	}
	end, err := s.Seek(0, io.SeekEnd)
	if err != nil {
		return 0, err
	}
	_, err = s.Seek(at, io.SeekStart)
	return end - at, err
}
