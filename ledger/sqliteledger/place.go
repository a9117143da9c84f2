package sqliteledger

import (
	"errors"
	"io/fs"
	"os"
)

// remember notes which file was opened.
func (s *Store) remember() (err error) {
	s.file, err = os.Stat(s.path)
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

// checkFile reports a file that does not lie at its path any more. Nothing is
// opened for that: closing a second descriptor would drop SQLite's locks, see
// section 2.2 of https://www.sqlite.org/howtocorrupt.html.
func (s *Store) checkFile() error {
	now, err := os.Stat(s.path)
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && !os.SameFile(s.file, now):
		return s.refuse("was moved, deleted or replaced while it was open: stop Pawl, restore the file, and start again", nil)
	}
	return err
}
