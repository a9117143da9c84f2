package sqliteledger

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// remember notes which file was opened.
func (s *Store) remember() (err error) {
	s.file, err = os.Stat(s.path)
	return err
}

// rememberWAL notes which log goes with the file. SQLite keeps it beside what a
// link leads to, and removes it when the last connection is closed.
func (s *Store) rememberWAL() error {
	real, err := filepath.EvalSymlinks(s.path)
	if err != nil {
		return err
	}
	s.walPath = real + "-wal"
	s.wal, err = os.Stat(s.walPath)
	return err
}

// inPlace does f between two looks at the path. A file that was deleted or
// replaced meanwhile is still written to, but nobody will ever find it again.
func (s *Store) inPlace(f func() error) error {
	if err := s.checkFile(); err != nil {
		return err
	}
	if err := f(); err != nil {
		return err
	}
	return s.checkFile()
}

// checkFile reports a file, or its log, that does not lie at its path any more.
// Nothing is opened for that: closing a second descriptor would drop SQLite's
// locks, see section 2.2 of https://www.sqlite.org/howtocorrupt.html.
func (s *Store) checkFile() error {
	for _, f := range []struct {
		path string
		was  os.FileInfo
		why  string
	}{
		{s.path, s.file, "was"},
		{s.walPath, s.wal, "has lost its log (-wal), and with it what was written last: the log was"},
	} {
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

// isGone reports that another file than was, or none, lies at path.
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
