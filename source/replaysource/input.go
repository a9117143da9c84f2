package replaysource

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/pawlhq/pawl/event"
)

// size checks that every path can be read, as far as that can be told without
// reading, and adds up the bytes there are: -1 if an input does not say.
func size(paths []string, stdin io.Reader) (int64, error) {
	var total int64
	known, stdins := true, 0
	for _, path := range paths {
		info, err := stat(path, stdin)
		switch {
		case err != nil:
			return 0, fmt.Errorf("replay: cannot read %s: %w", event.Quote(path), withoutPath(err))
		case info != nil && info.IsDir():
			return 0, fmt.Errorf("replay: %s is a folder: name the files in it", event.Quote(path))
		case info != nil && info.Mode().IsRegular():
			total += info.Size()
		default:
			known = false
		}
		if path == "-" {
			stdins++
		}
	}
	if stdins > 1 {
		return 0, errors.New(`replay: standard input ("-") can be read only once`)
	}
	if !known {
		total = -1
	}
	return total, nil
}

// stat is nil for a standard input that is no file.
func stat(path string, stdin io.Reader) (fs.FileInfo, error) {
	if path != "-" {
		return os.Stat(path)
	}
	if f, ok := stdin.(*os.File); ok {
		return f.Stat()
	}
	return nil, nil
}

// bare is the cause without the path, which is printed quoted already.
func withoutPath(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// input is an opened input whose Read ends when the context does.
type input struct {
	io.Reader
	close func()
}

func open(ctx context.Context, path string, stdin io.Reader) (input, error) {
	r, closeFile := stdin, func() {}
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return input{}, fmt.Errorf("replay: cannot read %s: %w; everything before it was delivered", displayPath(path), withoutPath(err))
		}
		r, closeFile = f, func() { _ = f.Close() } // only read: nothing to lose
	}
	if f, ok := r.(*os.File); ok {
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
			return input{Reader: f, close: closeFile}, nil // never blocks for long
		}
	}
	p := newAsyncReader(ctx, r)
	return input{Reader: p, close: func() { p.end(); closeFile() }}, nil
}

// pump reads from a pipe or terminal, which may have nothing to say for hours,
// in a goroutine of its own.
type asyncReader struct {
	ctx    context.Context
	cancel context.CancelFunc
	from   io.Reader
	blocks chan block
	ended  chan struct{}
	rest   []byte // of the last block
	err    error  // after it
}

type block struct {
	bytes []byte
	err   error
}

func newAsyncReader(ctx context.Context, from io.Reader) *asyncReader {
	p := &asyncReader{from: from, blocks: make(chan block), ended: make(chan struct{})}
	p.ctx, p.cancel = context.WithCancel(ctx)
	go p.run()
	return p
}

func (p *asyncReader) run() {
	defer close(p.ended)
	// Two buffers are enough: whoever receives a block is done with the one
	// before.
	var buffers [2][]byte
	for i := range buffers {
		buffers[i] = make([]byte, readBuffer)
	}
	for i := 0; ; i = 1 - i {
		b := buffers[i]
		n, err := p.from.Read(b)
		select {
		case p.blocks <- block{b[:n], err}:
		case <-p.ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}

func (p *asyncReader) Read(to []byte) (int, error) {
	for len(p.rest) == 0 {
		if p.err != nil {
			return 0, p.err
		}
		select {
		case b := <-p.blocks:
			p.rest, p.err = b.bytes, b.err
		case <-p.ctx.Done():
			return 0, p.ctx.Err()
		}
	}
	n := copy(to, p.rest)
	p.rest = p.rest[n:]
	return n, nil
}

// end stops the goroutine and waits for it, where the operating system can
// interrupt a read. Where it cannot (a terminal), the read is left behind: it
// ends with the next input and then touches nothing.
func (p *asyncReader) end() {
	p.cancel()
	d, ok := p.from.(interface{ SetReadDeadline(time.Time) error })
	if !ok || d.SetReadDeadline(time.Unix(1, 0)) != nil {
		return
	}
	<-p.ended
	_ = d.SetReadDeadline(time.Time{}) // the reader is the caller's: as it was
}
