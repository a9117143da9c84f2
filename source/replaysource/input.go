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

// size returns the total size in bytes, or -1 if an input has no size. It checks that all paths are
// readable, as far as possible without reading.
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

func stat(path string, stdin io.Reader) (fs.FileInfo, error) {
	if path != "-" {
		return os.Stat(path)
	}
	if f, ok := stdin.(*os.File); ok {
		return f.Stat()
	}
	return nil, nil
}

// The error messages already contain the quoted path.
func withoutPath(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

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
		r, closeFile = f, func() { _ = f.Close() }
	}
	if f, ok := r.(*os.File); ok {
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
			return input{Reader: f, close: closeFile}, nil
		}
	}
	p := newAsyncReader(ctx, r)
	return input{Reader: p, close: func() { p.end(); closeFile() }}, nil
}

// asyncReader reads from a pipe or a terminal in its own goroutine, because such a read may
// block for hours.
type asyncReader struct {
	ctx    context.Context
	cancel context.CancelFunc
	from   io.Reader
	blocks chan block
	ended  chan struct{}
	rest   []byte
	err    error
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
	// Two buffers suffice: when a block is received, the previous one was consumed.
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

// end stops the goroutine, if the operating system can interrupt the read. Otherwise, for a terminal, the
// read continues until the next input, which is discarded.
func (p *asyncReader) end() {
	p.cancel()
	d, ok := p.from.(interface{ SetReadDeadline(time.Time) error })
	if !ok || d.SetReadDeadline(time.Unix(1, 0)) != nil {
		return
	}
	<-p.ended
	_ = d.SetReadDeadline(time.Time{})
}
