package worker

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
)

// spoolMemory is in bytes.
const spoolMemory = 4 << 20

// spool buffers an output until its handler has succeeded.
type spool struct {
	memory bytes.Buffer
	file   *os.File
	size   int64
}

func (s *spool) Write(b []byte) (int, error) {
	if s.file == nil && s.memory.Len()+len(b) > spoolMemory {
		if err := s.spill(); err != nil {
			return 0, err
		}
	}
	var w io.Writer = &s.memory
	if s.file != nil {
		w = s.file
	}
	n, err := w.Write(b)
	s.size += int64(n)
	if err != nil {
		err = fmt.Errorf("buffer the output in %s (is the disk full?): %w", os.TempDir(), err)
	}
	return n, err
}

// The temporary file is unlinked, so it does not survive a crash.
func (s *spool) spill() error {
	f, err := os.CreateTemp("", "pawl-output-*")
	if err != nil {
		return fmt.Errorf("buffer a large output: %w", err)
	}
	if err := os.Remove(f.Name()); err != nil {
		return errors.Join(fmt.Errorf("buffer a large output: %w", err), f.Close())
	}
	s.file = f
	if _, err := s.memory.WriteTo(f); err != nil {
		return fmt.Errorf("buffer a large output in %s (is the disk full?): %w", os.TempDir(), err)
	}
	s.memory = bytes.Buffer{}
	return nil
}

// The store seeks to sign the body.
func (s *spool) open() (io.ReadCloser, error) {
	if s.file == nil {
		return reader{bytes.NewReader(s.memory.Bytes())}, nil
	}
	return reader{io.NewSectionReader(s.file, 0, s.size)}, nil
}

type reader struct{ io.ReadSeeker }

func (reader) Close() error { return nil }

func (s *spool) len() int64 { return s.size }

func (s *spool) close() {
	if s.file != nil {
		_ = s.file.Close() // the file is unlinked
	}
}
