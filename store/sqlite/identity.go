package sqlite

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

func (s *Store) recordIdentity() (err error) {
	s.file, err = os.Stat(s.path)
	return err
}

// SQLite keeps the log in the folder of the symbolic link's target.
func (s *Store) recordWALIdentity() error {
	real, err := filepath.EvalSymlinks(s.path)
	if err != nil {
		return err
	}
	s.walPath = real + "-wal"
	s.wal, err = os.Stat(s.walPath)
	if s.readOnly && errors.Is(err, fs.ErrNotExist) {
		return nil // a copy by VACUUM INTO has no log until the first write
	}
	return err
}

// checkedCall checks the path before and after f. SQLite continues to write to a deleted or
// replaced file, which no other process reads.
func (s *Store) checkedCall(f func() error) error {
	if err := s.checkFile(); err != nil {
		return err
	}
	if err := f(); err != nil {
		return err
	}
	return s.checkFile()
}

// Closing a second descriptor would drop SQLite's locks: see section 2.2 of
// https://www.sqlite.org/howtocorrupt.html.
func (s *Store) checkFile() error {
	for _, f := range []struct {
		path string
		was  os.FileInfo
		why  string
	}{
		{s.path, s.file, "was"},
		{s.walPath, s.wal, "has lost its log (-wal) and the last changes in it: the log was"},
	} {
		if f.was == nil {
			continue
		}
		gone, err := isGone(f.path, f.was)
		switch {
		case err != nil:
			return err
		case gone:
			return s.refuse(f.why+" moved, deleted or replaced while it was open: stop Pawl, restore the file, and start again", nil)
		}
	}
	return nil
}

func isGone(path string, was os.FileInfo) (bool, error) {
	now, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return true, nil
	case err != nil:
		return false, err
	}
	return !os.SameFile(was, now), nil
}
