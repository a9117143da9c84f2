package replaysource

import (
	"bufio"
	"bytes"
	"context"
	"errors"
)

// window is a reader that stops at end, so that the decoder cannot buffer a larger value.
type window struct {
	unread []byte // read before r
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

func (w *window) unreadBytes(b []byte) {
	w.unread = append(bytes.Clone(b), w.unread...)
	w.read -= int64(len(b))
}

// skipLine returns io.EOF if there is no newline.
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

// Bytes after that line are read again.
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
