package filesapi

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
)

const (
	// spoolFiles is the number of the largest files that the disk has room for, over
	// all subjects.
	spoolFiles = 16
	// spoolShare is the part of the free room that one subject may use: with a third
	// of what is left, a subject alone gets a quarter of the room, and no number of
	// subjects uses all of it.
	spoolShare = 3
	// smallBody is the number of bytes of each body that need no room, so that small
	// files pass while the room is used up. maxStreams limits them.
	smallBody = 1 << 20
)

// errFull: the disk has no room for a body.
var errFull = newProblem(http.StatusInsufficientStorage, "the service has no disk space for the file now: try again, or upload with a signed URL")

// spool is a body on the disk. It takes room as the bytes arrive, because a length
// that a client declares costs the client nothing.
type spool struct {
	*os.File
	s                 *server
	subject           *limit
	written, reserved int64 // bytes
}

// newSpool returns an empty spool for a subject. On Unix its file has no name, and is
// removed when the process ends, however it ends.
func (s *server) newSpool(subject *limit) (*spool, error) {
	f, err := os.CreateTemp(s.Spool, "pawl-upload-*")
	if err != nil {
		return nil, fmt.Errorf("%w: create a temporary file: %w", errFull, err)
	}
	_ = os.Remove(f.Name()) // or else Close removes it
	return &spool{File: f, s: s, subject: subject}, nil
}

// Write implements io.Writer. It fails with errFull if the subject has no room left, or
// the disk.
func (p *spool) Write(b []byte) (int, error) {
	if more := max(p.written+int64(len(b))-smallBody, 0) - p.reserved; !p.reserve(more) {
		return 0, errFull
	}
	n, err := p.File.Write(b)
	p.written += int64(n)
	if err != nil {
		err = fmt.Errorf("%w: %w", errFull, err)
	}
	return n, err
}

// reserve takes room for more bytes, and reports whether there was any.
func (p *spool) reserve(more int64) bool {
	if more == 0 {
		return true
	}
	p.s.spooling.Lock()
	defer p.s.spooling.Unlock()
	free := spoolFiles*min(p.s.MaxSize, maxPut) - p.s.spooled - more
	if p.subject.spooled+more > free/spoolShare {
		return false
	}
	p.reserved += more
	p.s.spooled += more
	p.subject.spooled += more
	return true
}

// Close removes the file and returns its room.
func (p *spool) Close() error {
	defer func() {
		p.s.spooling.Lock()
		defer p.s.spooling.Unlock()
		p.s.spooled -= p.reserved
		p.subject.spooled -= p.reserved
	}()
	err := p.File.Close()
	if removed := os.Remove(p.Name()); !errors.Is(removed, fs.ErrNotExist) {
		err = errors.Join(err, removed)
	}
	return err
}
