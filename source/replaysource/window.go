package replaysource

import (
	"bufio"
	"bytes"
	"context"
	"errors"
)

// window is a reader that goes no further than end: a decoder in front of it
// cannot hold more of a value than that.
type window struct {
	unread []byte // given back, before what r has
	r      *bufio.Reader
	read   int64
	end    int64
}

func (w *window) Read(p []byte) (n int, err error) {
	if w.read >= w.end {
		return 0, errTooLarge
	}
	p = p[:min(int64(len(p)), w.end-w.read)]
	if len(w.unread) > 0 {
		n = copy(p, w.unread)
		w.unread = w.unread[n:]
	} else {
		n, err = w.r.Read(p)
	}
	w.read += int64(n)
	return n, err
}

// giveBack makes b, the last that was read, what is read next.
func (w *window) unreadBytes(b []byte) {
	w.unread = append(bytes.Clone(b), w.unread...)
	w.read -= int64(len(b))
}

// skipLine reads up to and with the next newline, however far that is, and
// keeps nothing of it. The error is io.EOF if there is none.
func (w *window) skipLine(ctx context.Context) error {
	if i := bytes.IndexByte(w.unread, '\n'); i >= 0 {
		w.read += int64(i + 1)
		w.unread = w.unread[i+1:]
		return nil
	}
	w.read += int64(len(w.unread))
	w.unread = nil
	for ctx.Err() == nil {
		b, err := w.r.ReadSlice('\n')
		w.read += int64(len(b))
		if !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
	}
	return ctx.Err()
}

// skipLine passes over the line in which the value began that next could not
// read. What was read of the lines after it is read again.
func (v *values) skipLine(ctx context.Context) error {
	v.window.unreadBytes(v.dec.UnreadBuffer()[v.space:])
	err := v.window.skipLine(ctx)
	if err == nil {
		v.line++
	}
	v.base = v.window.read
	v.dec = newDecoder(v.window)
	return err
}
