package inventory

import (
	"bufio"
	"container/heap"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"sort"
)

// run is a file of entries in key order. It stores each key without the prefix shared with the
// previous one.
type run struct {
	f          *os.File
	level      int
	size       int64
	seekPoints []seekPoint
}

// At a seekPoint the file stores the whole key, so that a reader can start there.
type seekPoint struct {
	key    string
	offset int64
}

const (
	// seekPointBytes bounds the bytes that a search reads.
	seekPointBytes = 512 << 10
	readBuffer     = 16 << 10
)

type runWriter struct {
	*run
	w   *bufio.Writer
	buf []byte
	key string
}

func newRun(dir string) (*runWriter, error) {
	f, err := createTemp(dir)
	if err != nil {
		return nil, err
	}
	return &runWriter{run: &run{f: f}, w: bufio.NewWriterSize(f, 256<<10)}, nil
}

func (w *runWriter) write(e entry) error {
	if len(w.seekPoints) == 0 || w.size-w.seekPoints[len(w.seekPoints)-1].offset >= seekPointBytes {
		w.seekPoints = append(w.seekPoints, seekPoint{e.key, w.size})
		w.key = ""
	}
	shared := 0
	for shared < min(len(w.key), len(e.key)) && w.key[shared] == e.key[shared] {
		shared++
	}
	b := binary.AppendUvarint(w.buf[:0], uint64(shared))
	b = appendText(b, e.key[shared:])
	b = appendText(b, e.etag)
	b = binary.AppendVarint(b, e.modified)
	b = binary.AppendVarint(b, e.size)
	w.buf, w.key = b, e.key
	w.size += int64(len(b))
	_, err := w.w.Write(b)
	return err
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func (w *runWriter) flush() error { return w.w.Flush() }

type cursor struct {
	entry
	r   *bufio.Reader
	key []byte
}

// seek returns a cursor at the first entry at or after from, or nil at the end.
func (r *run) seek(from string) (*cursor, error) {
	i := sort.Search(len(r.seekPoints), func(i int) bool { return r.seekPoints[i].key >= from })
	start := r.seekPoints[max(0, i-1)].offset
	c := &cursor{r: bufio.NewReaderSize(io.NewSectionReader(r.f, start, r.size-start), readBuffer)}
	for {
		more, err := c.next()
		if err != nil || !more {
			return nil, err
		}
		if c.entry.key >= from {
			return c, nil
		}
	}
}

func (c *cursor) next() (bool, error) {
	shared, err := binary.ReadUvarint(c.r)
	if err == io.EOF {
		return false, nil
	}
	if err == nil && shared > uint64(len(c.key)) {
		err = errors.New("a key extends a longer prefix than the previous key has")
	}
	if err == nil {
		c.key, err = c.appendText(c.key[:shared], maxKey)
	}
	var etag [64]byte
	tag, err := c.rest(etag[:0], err)
	if err != nil {
		return false, fmt.Errorf("the file was truncated or changed: %w", err)
	}
	c.entry.key, c.etag = string(c.key), string(tag)
	return true, nil
}

func (c *cursor) rest(etag []byte, err error) ([]byte, error) {
	if err == nil {
		etag, err = c.appendText(etag, maxETag)
	}
	if err == nil {
		c.modified, err = binary.ReadVarint(c.r)
	}
	if err == nil {
		c.size, err = binary.ReadVarint(c.r)
	}
	return etag, err
}

func (c *cursor) appendText(b []byte, most uint64) ([]byte, error) {
	n, err := binary.ReadUvarint(c.r)
	if err != nil {
		return b, err
	}
	if n > most {
		return b, fmt.Errorf("a text of %d bytes", n)
	}
	old := len(b)
	b = append(b, make([]byte, n)...)
	_, err = io.ReadFull(c.r, b[old:])
	return b, err
}

func merge(ctx context.Context, runs []*run, from string) iter.Seq2[entry, error] {
	return func(yield func(entry, error) bool) {
		var h cursors
		for _, r := range runs {
			c, err := r.seek(from)
			if err != nil {
				yield(entry{}, err)
				return
			}
			if c != nil {
				h = append(h, c)
			}
		}
		heap.Init(&h)
		last := ""
		for len(h) > 0 {
			if err := ctx.Err(); err != nil {
				yield(entry{}, err)
				return
			}
			e := h[0].entry
			if e.key != last && !yield(e, nil) {
				return
			}
			last = e.key
			if err := h.advance(); err != nil {
				yield(entry{}, err)
				return
			}
		}
	}
}

type cursors []*cursor

func (h *cursors) advance() error {
	more, err := (*h)[0].next()
	switch {
	case err != nil:
		return err
	case more:
		heap.Fix(h, 0)
	default:
		heap.Pop(h)
	}
	return nil
}

func (h cursors) Len() int           { return len(h) }
func (h cursors) Less(i, j int) bool { return h[i].compare(h[j].entry) < 0 }
func (h cursors) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *cursors) Push(x any)        { *h = append(*h, x.(*cursor)) }

func (h *cursors) Pop() any {
	old := *h
	c := old[len(old)-1]
	*h = old[:len(old)-1]
	return c
}
