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

func (s *filesScenario) runClient(ctx context.Context, a *clientFile) error {
	if err := a.draw(); err != nil {
		return err
	}
	s.updateReport(func(r *FilesReport) { r.Uploads.Begun++ })
	if a.kind == proxied {
		return s.uploadThroughService(ctx, a)
	}
	to, err := s.begin(ctx, a)
	if err != nil {
		return err
	}
	if err := s.beforeUpload(ctx, a, to); err != nil || a.kind == interrupted {
		return err
	}
	status, err := s.client.Put(ctx, to, nil, bytes.NewReader(a.body), len(a.body))
	if err != nil {
		return err
	}
	s.wantStatus(a, "the PUT of the right bytes", status, http.StatusOK)
	a.stored = true
	return s.afterUpload(ctx, a, to)
}

func (s *filesScenario) begin(ctx context.Context, a *clientFile) (*rig.SignedURL, error) {
	begun, err := s.client.Begin(ctx, a.key, &a.Promise)
	if err != nil {
		return nil, a.errorf("begin its upload: %w", err)
	}
	if begun.Upload == nil {
		return nil, a.errorf("its upload has no URL")
	}
	a.id, a.state = begun.File.ID, files.Pending
	s.relay.expect(filesPrefix+a.id, a.handling)
	return begun.Upload, nil
}

func (s *filesScenario) beforeUpload(ctx context.Context, a *clientFile, to *rig.SignedURL) error {
	switch a.kind {
	case refused:
		return s.sendWrongPuts(ctx, a, to)
	case repeated:
		return s.beginAgain(ctx, a)
	case deletedEarly:
		return s.deleteFile(ctx, a)
	case interrupted:
		_, err := s.client.Put(ctx, to, nil, firstHalf(a.body), len(a.body))
		if err == nil {
			return a.errorf("its interrupted upload succeeded")
		}
		s.updateReport(func(r *FilesReport) { r.Uploads.BrokenOff++ })
		return s.checkedCall(ctx, a, http.MethodPost, "/complete")
	}
	return nil
}

func (s *filesScenario) afterUpload(ctx context.Context, a *clientFile, to *rig.SignedURL) error {
	switch a.kind {
	case deletedEarly:
		return nil // the file stays deleted
	case unnotified:
		a.state = files.Indexed // the state that the audit should set
		return nil
	case completed:
		a.state = files.Indexed
		s.updateReport(func(r *FilesReport) { r.Healed.Complete++ })
		return s.checkedCall(ctx, a, http.MethodPost, "/complete")
	}
	if err := s.awaitVisible(ctx, a); err != nil {
		return err
	}
	switch a.kind {
	case refused:
		return s.wantRefusedPut(ctx, a, "a second PUT", http.StatusPreconditionFailed, to, nil, a.body)
	case repeated:
		return s.beginAgain(ctx, a)
	case deletedSoon:
		return s.deleteFile(ctx, a)
	case undeleted:
		if err := s.deleteFile(ctx, a); err != nil {
			return err
		}
		a.state = files.Indexed
		s.updateReport(func(r *FilesReport) { r.Uploads.Undeleted++ })
		return s.checkedCall(ctx, a, http.MethodPost, "/undelete")
	}
	return nil
}

func (s *filesScenario) awaitVisible(ctx context.Context, a *clientFile) error {
	a.state = files.Indexed
	return rig.Until(ctx, 20*time.Millisecond, func() (bool, error) {
		f, _, err := s.client.Call(ctx, http.MethodGet, "/v1/files/"+a.id, nil, nil)
		return err == nil && f.State == a.state.String(), err
	})
}

func (s *filesScenario) checkedCall(ctx context.Context, a *clientFile, method, what string) error {
	f, status, err := s.client.Call(ctx, method, "/v1/files/"+a.id+what, nil, nil)
	if err != nil {
		return err
	}
	s.wantStatus(a, method+" "+what, status, http.StatusOK)
	if f.State != a.state.String() {
		s.reportWrong("%s is %s after %s %s, want %s", a.key, f.State, method, what, a.state)
	}
	return nil
}

func (s *filesScenario) deleteFile(ctx context.Context, a *clientFile) error {
	a.state = files.Deleted
	s.updateReport(func(r *FilesReport) { r.Uploads.Deleted++ })
	if err := s.checkedCall(ctx, a, http.MethodDelete, ""); err != nil {
		return err
	}
	_, status, err := s.client.Call(ctx, http.MethodGet, "/v1/files/"+a.id, nil, nil)
	s.wantStatus(a, "GET after the deletion", status, http.StatusNotFound)
	return err
}

func (s *filesScenario) beginAgain(ctx context.Context, a *clientFile) error {
	s.updateReport(func(r *FilesReport) { r.Uploads.Repeated++ })
	begun, err := s.client.Begin(ctx, a.key, &a.Promise)
	if err != nil {
		return a.errorf("repeat the request with its idempotency key: %w", err)
	}
	if begun.File == nil || begun.File.ID != a.id || a.stored != (begun.Upload == nil) {
		s.reportWrong("%s: a second request with its idempotency key returned %+v", a.key, begun)
	}
	return nil
}

func (s *filesScenario) sendWrongPuts(ctx context.Context, a *clientFile, to *rig.SignedURL) error {
	other := bytes.Clone(a.body)
	other[len(other)/2] ^= 1
	return errors.Join(
		s.wantRefusedPut(ctx, a, "a PUT of wrong bytes", http.StatusBadRequest, to, nil, other),
		s.wantRefusedPut(ctx, a, "a PUT of more bytes", http.StatusForbidden, to, nil, append(other, 0)),
		s.wantRefusedPut(ctx, a, "a PUT of another type", http.StatusForbidden, to, map[string]string{"Content-Type": "text/html"}, a.body),
	)
}

func (s *filesScenario) wantRefusedPut(ctx context.Context, a *clientFile, what string, want int, to *rig.SignedURL, headers map[string]string, body []byte) error {
	status, err := s.client.Put(ctx, to, headers, bytes.NewReader(body), len(body))
	s.wantStatus(a, what, status, want)
	s.updateReport(func(r *FilesReport) { r.Uploads.Refused++ })
	return err
}

func (s *filesScenario) uploadThroughService(ctx context.Context, a *clientFile) error {
	path := "/v1/files?entity=" + filesEntity
	headers := map[string]string{"Content-Type": a.ContentType, "Idempotency-Key": a.key}
	err := rig.Until(ctx, 50*time.Millisecond, func() (bool, error) {
		_, status, err := s.client.Send(ctx, http.MethodPost, s.endpoint.url+path, headers, firstHalf(a.body), len(a.body))
		if err == nil && status < http.StatusInternalServerError {
			return false, a.errorf("the first half of its bytes was answered with %d", status)
		}
		return err != nil, nil // a client gets an immediate error from a killed service
	})
	if err != nil {
		return err
	}
	s.updateReport(func(r *FilesReport) { r.Uploads.BrokenOff++ })
	f, status, err := s.client.Call(ctx, http.MethodPost, path, headers, a.body)
	if err != nil {
		return err
	}
	s.wantStatus(a, "POST "+path, status, http.StatusCreated)
	a.id, a.state, a.stored = f.ID, files.Indexed, true
	return nil
}

func (s *filesScenario) wantStatus(a *clientFile, what string, got, want int) {
	if got != want {
		s.reportWrong("%s: %s was answered with %d, want %d", a.key, what, got, want)
	}
}

var errBrokenOff = errors.New("the client interrupts the upload")

func firstHalf(body []byte) io.Reader {
	return io.MultiReader(bytes.NewReader(body[:len(body)/2]), brokenReader{})
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, errBrokenOff }
