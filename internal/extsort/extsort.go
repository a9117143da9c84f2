// Package extsort sorts any number of byte strings in bounded memory, by sorted runs in a temporary
// file.
package extsort

import (
	"bufio"
	"bytes"
	"cmp"
	"container/heap"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"slices"
)

const (
	defaultRoom = 16 << 20
	// The read buffers of all runs share readRoom, within these limits for each.
	readRoom      = 16 << 20
	minReadBuffer = 4 << 10
	maxReadBuffer = 64 << 10
)

// Sorter sorts byte strings. The zero value sorts in about 25 MB of memory. Only one goroutine may
// use a Sorter at a time.
type Sorter struct {
	// Room is the size of a run in bytes; default 16 MiB.
	Room int

	count   int64
	records []byte // the records that are not in a run
	spans   []span // their positions in records
	file    *os.File
	ends    []int64 // 0, and the ends of the runs in the file
}

type span struct{ start, end uint32 }

// Add adds a copy of a record, which must be shorter than Room.
func (s *Sorter) Add(record []byte) error {
	if s.records == nil {
		s.Room = cmp.Or(s.Room, defaultRoom)
		s.records, s.spans = make([]byte, 0, s.Room), make([]span, 0, s.Room/16)
	}
	if len(s.records)+len(record) > s.Room || len(s.spans) == cap(s.spans) {
		if err := s.spill(); err != nil {
			return err
		}
	}
	start := len(s.records)
	s.records = append(s.records, record...)
	s.spans = append(s.spans, span{uint32(start), uint32(len(s.records))})
	s.count++
	return nil
}

// Len returns the number of records.
func (s *Sorter) Len() int64 { return s.count }

func (s *Sorter) at(i span) []byte { return s.records[i.start:i.end] }

// spill writes the records in memory to a run.
func (s *Sorter) spill() error {
	if s.file == nil {
		f, err := os.CreateTemp("", "pawl-sort-*")
		if err != nil {
			return err
		}
		s.file, s.ends = f, []int64{0}
		_ = os.Remove(f.Name()) // if the operating system refuses, Close removes it
	}
	slices.SortFunc(s.spans, func(a, b span) int { return bytes.Compare(s.at(a), s.at(b)) })
	w := bufio.NewWriterSize(s.file, maxReadBuffer)
	end := s.ends[len(s.ends)-1]
	var head [binary.MaxVarintLen64]byte
	for _, i := range s.spans {
		n := binary.PutUvarint(head[:], uint64(i.end-i.start))
		_, _ = w.Write(head[:n]) // Flush returns the error
		_, _ = w.Write(s.at(i))
		end += int64(n) + int64(i.end-i.start)
	}
	s.records, s.spans, s.ends = s.records[:0], s.spans[:0], append(s.ends, end)
	return w.Flush()
}

// Each calls f for all records in the order of [bytes.Compare], until f or ctx ends it with an
// error. A record is valid during the call. Each may be called once, and Add not after it.
func (s *Sorter) Each(ctx context.Context, f func(record []byte) error) error {
	if s.count == 0 {
		return nil
	}
	if err := s.spill(); err != nil {
		return err
	}
	s.records, s.spans = nil, nil
	size := min(max(readRoom/len(s.ends), minReadBuffer), maxReadBuffer)
	var h cursors
	for i, end := range s.ends[1:] {
		run := io.NewSectionReader(s.file, s.ends[i], end-s.ends[i])
		c := &cursor{r: bufio.NewReaderSize(run, size)}
		if err := c.next(); err != nil { // a run is not empty
			return err
		}
		h = append(h, c)
	}
	heap.Init(&h)
	for len(h) > 0 && ctx.Err() == nil {
		if err := f(h[0].record); err != nil {
			return err
		}
		switch err := h[0].next(); err {
		case nil:
			heap.Fix(&h, 0)
		case io.EOF:
			heap.Pop(&h)
		default:
			return err
		}
	}
	return ctx.Err()
}

// Close frees the memory and removes the temporary file.
func (s *Sorter) Close() {
	s.records, s.spans = nil, nil
	if s.file != nil {
		_ = s.file.Close() // the content is no longer needed
		_ = os.Remove(s.file.Name())
	}
}

// cursor reads a run and holds its current record.
type cursor struct {
	r      *bufio.Reader
	record []byte
}

// next returns io.EOF at the end of the run.
func (c *cursor) next() error {
	n, err := binary.ReadUvarint(c.r)
	if err != nil {
		return err
	}
	c.record = slices.Grow(c.record[:0], int(n))[:n]
	if _, err := io.ReadFull(c.r, c.record); err != nil {
		return fmt.Errorf("read a temporary file: %w", err)
	}
	return nil
}

// cursors is a heap with the smallest record on top.
type cursors []*cursor

func (h cursors) Len() int           { return len(h) }
func (h cursors) Less(i, j int) bool { return bytes.Compare(h[i].record, h[j].record) < 0 }
func (h cursors) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *cursors) Push(x any)        { *h = append(*h, x.(*cursor)) }

func (h *cursors) Pop() any {
	old := *h
	c := old[len(old)-1]
	*h = old[:len(old)-1]
	return c
}
