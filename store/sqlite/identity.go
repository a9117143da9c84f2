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

// recordWALIdentity records the identity of the write-ahead log. SQLite keeps the log beside
// the target of a symbolic link, and removes it when the last connection closes.
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

// checkedCall checks the path before and after f. SQLite continues to write to a file that was
// deleted or replaced, but no other process reads these writes.
func (s *Store) checkedCall(f func() error) error {
	if err := s.checkFile(); err != nil {
		return err
	}
	if err := f(); err != nil {
		return err
	}
	return s.checkFile()
}

// checkFile returns an error if the file or its log is no longer at its path. It opens
// nothing, because closing a second descriptor would drop the locks of SQLite: see section
// 2.2 of https://www.sqlite.org/howtocorrupt.html.
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

// isGone reports whether the file at path is missing, or is another file than was.
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
