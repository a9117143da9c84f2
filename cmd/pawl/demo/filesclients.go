package demo

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/pawlhq/pawl/files"
	"github.com/pawlhq/pawl/proof/rig"
)

// live has one file go through all that its kind has.
func (s *filesShow) live(ctx context.Context, a *clientFile) error {
	if err := a.draw(); err != nil {
		return err
	}
	s.note(func(r *FilesReport) { r.Uploads.Begun++ })
	if a.kind == passed {
		return s.pass(ctx, a)
	}
	to, err := s.begin(ctx, a)
	if err != nil {
		return err
	}
	if err := s.before(ctx, a, to); err != nil || a.kind == broken {
		return err
	}
	status, err := s.client.Put(ctx, to, nil, bytes.NewReader(a.body), len(a.body))
	if err != nil {
		return err
	}
	s.expect(a, "the PUT of the right bytes", status, http.StatusOK)
	a.kept = true
	return s.after(ctx, a, to)
}

// begin begins the upload, and says how the store's notification will be carried.
func (s *filesShow) begin(ctx context.Context, a *clientFile) (*rig.SignedURL, error) {
	begun, err := s.client.Begin(ctx, a.key, &a.Promise)
	if err != nil {
		return nil, a.errorf("its upload cannot begin: %w", err)
	}
	if begun.Upload == nil {
		return nil, a.errorf("its upload has no URL")
	}
	a.id, a.state = begun.File.ID, files.Pending
	s.relay.expect(filesPrefix+a.id, a.handling)
	return begun.Upload, nil
}

// before plays what comes before the bytes.
func (s *filesShow) before(ctx context.Context, a *clientFile, to *rig.SignedURL) error {
	switch a.kind {
	case refused:
		return s.refuse(ctx, a, to)
	case repeated:
		return s.again(ctx, a)
	case early:
		return s.remove(ctx, a)
	case broken:
		_, err := s.client.Put(ctx, to, nil, half(a.body), len(a.body))
		if err == nil {
			return a.errorf("its upload did not break off")
		}
		s.note(func(r *FilesReport) { r.Uploads.BrokenOff++ })
		return s.see(ctx, a, http.MethodPost, "/complete")
	}
	return nil
}

// after plays what comes after the bytes.
func (s *filesShow) after(ctx context.Context, a *clientFile, to *rig.SignedURL) error {
	switch a.kind {
	case early:
		return nil // it stays deleted
	case unnotified:
		a.state = files.Indexed // when the audit has been
		return nil
	case completed:
		a.state = files.Indexed
		s.note(func(r *FilesReport) { r.Healed.Complete++ })
		return s.see(ctx, a, http.MethodPost, "/complete")
	}
	if err := s.appear(ctx, a); err != nil {
		return err
	}
	switch a.kind {
	case refused:
		return s.refusePut(ctx, a, "a second PUT", http.StatusPreconditionFailed, to, nil, a.body)
	case repeated:
		return s.again(ctx, a)
	case withdrawal:
		return s.remove(ctx, a)
	case regretted:
		if err := s.remove(ctx, a); err != nil {
			return err
		}
		a.state = files.Indexed
		s.note(func(r *FilesReport) { r.Uploads.Undeleted++ })
		return s.see(ctx, a, http.MethodPost, "/undelete")
	}
	return nil
}

// appear waits until the file is visible.
func (s *filesShow) appear(ctx context.Context, a *clientFile) error {
	a.state = files.Indexed
	return rig.Until(ctx, 20*time.Millisecond, func() (bool, error) {
		f, _, err := s.client.Call(ctx, http.MethodGet, "/v1/files/"+a.id, nil, nil)
		return err == nil && f.State == a.state.String(), err
	})
}

// see sends a request about the file, which must answer that it is as it should be.
func (s *filesShow) see(ctx context.Context, a *clientFile, method, what string) error {
	f, status, err := s.client.Call(ctx, method, "/v1/files/"+a.id+what, nil, nil)
	if err != nil {
		return err
	}
	s.expect(a, method+" "+what, status, http.StatusOK)
	if f.State != a.state.String() {
		s.wrong("%s is %s after %s %s, and should be %s", a.key, f.State, method, what, a.state)
	}
	return nil
}

// remove deletes the file, which must be hidden at once.
func (s *filesShow) remove(ctx context.Context, a *clientFile) error {
	a.state = files.Deleted
	s.note(func(r *FilesReport) { r.Uploads.Deleted++ })
	if err := s.see(ctx, a, http.MethodDelete, ""); err != nil {
		return err
	}
	_, status, err := s.client.Call(ctx, http.MethodGet, "/v1/files/"+a.id, nil, nil)
	s.expect(a, "GET after it was deleted", status, http.StatusNotFound)
	return err
}

// again begins the same upload once more, which must be the same file.
func (s *filesShow) again(ctx context.Context, a *clientFile) error {
	s.note(func(r *FilesReport) { r.Uploads.Repeated++ })
	begun, err := s.client.Begin(ctx, a.key, &a.Promise)
	if err != nil {
		return a.errorf("a second request with its idempotency key: %w", err)
	}
	if begun.File == nil || begun.File.ID != a.id || a.kept != (begun.Upload == nil) {
		s.wrong("%s: a second request with its idempotency key answers with %+v", a.key, begun)
	}
	return nil
}

// refuse sends what was not promised.
func (s *filesShow) refuse(ctx context.Context, a *clientFile, to *rig.SignedURL) error {
	other := bytes.Clone(a.body)
	other[len(other)/2] ^= 1
	return errors.Join(
		s.refusePut(ctx, a, "a PUT of wrong bytes", http.StatusBadRequest, to, nil, other),
		s.refusePut(ctx, a, "a PUT of more bytes", http.StatusForbidden, to, nil, append(other, 0)),
		s.refusePut(ctx, a, "a PUT of another type", http.StatusForbidden, to, map[string]string{"Content-Type": "text/html"}, a.body),
	)
}

func (s *filesShow) refusePut(ctx context.Context, a *clientFile, what string, want int, to *rig.SignedURL, headers map[string]string, body []byte) error {
	status, err := s.client.Put(ctx, to, headers, bytes.NewReader(body), len(body))
	s.expect(a, what, status, want)
	s.note(func(r *FilesReport) { r.Uploads.Refused++ })
	return err
}

// pass sends the bytes through the service: first half of them, then all.
func (s *filesShow) pass(ctx context.Context, a *clientFile) error {
	path := "/v1/files?entity=" + filesEntity
	headers := map[string]string{"Content-Type": a.ContentType, "Idempotency-Key": a.key}
	err := rig.Until(ctx, 50*time.Millisecond, func() (bool, error) {
		_, status, err := s.client.Send(ctx, http.MethodPost, s.endpoint.url+path, headers, half(a.body), len(a.body))
		if err == nil && status < http.StatusInternalServerError {
			return false, a.errorf("half of it was answered with %d", status)
		}
		return err != nil, nil // of a service that was killed there is an answer at once
	})
	if err != nil {
		return err
	}
	s.note(func(r *FilesReport) { r.Uploads.BrokenOff++ })
	f, status, err := s.client.Call(ctx, http.MethodPost, path, headers, a.body)
	if err != nil {
		return err
	}
	s.expect(a, "POST "+path, status, http.StatusCreated)
	a.id, a.state, a.kept = f.ID, files.Indexed, true
	return nil
}

// expect notes a status that should be another.
func (s *filesShow) expect(a *clientFile, what string, got, want int) {
	if got != want {
		s.wrong("%s: %s was answered with %d, and should be with %d", a.key, what, got, want)
	}
}

var errBreakOff = errors.New("the client breaks off")

// half is the first half of a body, which then breaks off.
func half(body []byte) io.Reader {
	return io.MultiReader(bytes.NewReader(body[:len(body)/2]), breakOff{})
}

type breakOff struct{}

func (breakOff) Read([]byte) (int, error) { return 0, errBreakOff }
