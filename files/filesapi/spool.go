package filesapi

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
)

const (
	// spoolFiles limits the disk space of all subjects, in files of the maximum size.
	spoolFiles = 16
	// A subject may use the free space divided by spoolShare. Because each subject gets a third of
	// the space that remains, the subjects never exhaust it.
	spoolShare = 3
	// smallBody is the number of bytes of each body that need no reserved space. Small files are
	// therefore accepted even if no space is free; maxStreams limits their number.
	smallBody = 1 << 20
)

var errFull = newProblem(http.StatusInsufficientStorage, "the service has no disk space for the file now: try again, or upload with a signed URL")

// spool reserves space as bytes arrive, because a client can declare any length without sending
// bytes.
type spool struct {
	*os.File
	s                 *server
	subject           *limit
	written, reserved int64
}

// On Unix the file of a spool has no name, so it disappears when the process ends.
func (s *server) newSpool(subject *limit) (*spool, error) {
	f, err := os.CreateTemp(s.Spool, "pawl-upload-*")
	if err != nil {
		return nil, fmt.Errorf("%w: create a temporary file: %w", errFull, err)
	}
	_ = os.Remove(f.Name()) // if this fails, Close removes it
	return &spool{File: f, s: s, subject: subject}, nil
}

// Write implements io.Writer. It fails with errFull if the subject's share or the disk is full.
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
