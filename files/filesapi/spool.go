package filesapi

import (
	"errors"
	"io/fs"
	"net/http"
	"os"
)

// spoolFiles is for how many of the largest files there is room on the disk at a time,
// over all subjects.
const spoolFiles = 16

// spool is a body on the disk.
type spool struct {
	*os.File
	s     *server
	bytes int64 // that it takes of the room
}

// newSpool makes room for a body of a length; below 0: it is not known. On Unix its
// file has no name, and goes with the process, however that ends.
func (s *server) newSpool(length int64) (*spool, error) {
	largest := min(s.MaxSize, maxPut)
	p := &spool{s: s, bytes: length}
	if length < 0 {
		p.bytes = largest
	}
	if s.spooled.Add(p.bytes) > spoolFiles*largest {
		s.spooled.Add(-p.bytes)
		return nil, refuse(http.StatusServiceUnavailable, "too many files are on their way through the service: try again, or send them in two steps")
	}
	f, err := os.CreateTemp(s.Spool, "pawl-upload-*")
	if err != nil {
		s.spooled.Add(-p.bytes)
		return nil, err
	}
	_ = os.Remove(f.Name()) // else Close does it
	p.File = f
	return p, nil
}

// Close gives the room back.
func (p *spool) Close() error {
	defer p.s.spooled.Add(-p.bytes)
	err := p.File.Close()
	if removed := os.Remove(p.Name()); !errors.Is(removed, fs.ErrNotExist) {
		err = errors.Join(err, removed)
	}
	return err
}
