package filesapi

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"mime"
	"net/http"
	"os"

	"github.com/pawlhq/pawl/files"
)

// storeFile buffers the body on disk to compute the SHA-256 that the upload must sign. Memory use
// therefore does not depend on the size.
func (s *server) storeFile(q *request) (_ *answer, err error) {
	entity, _, err := q.param("entity")
	if err != nil {
		return nil, err
	}
	if err := q.authorize("write", entity); err != nil {
		return nil, err
	}
	key, err := idempotencyKey(q.Header.Values("Idempotency-Key"))
	if err != nil {
		return nil, err
	}
	contentType, err := q.fileType()
	if err != nil {
		return nil, err
	}
	if q.ContentLength > min(s.MaxSize, maxPut) {
		return nil, s.tooLong()
	}
	subject := s.limit(q.subject)
	end, err := subject.acquireStream()
	if err != nil {
		return nil, err
	}
	defer end()
	if err := s.checkQuota(q, entity, key); err != nil {
		return nil, err
	}
	spool, err := s.newSpool(subject)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, spool.Close()) }()
	p, err := s.receive(q, spool)
	if err != nil {
		return nil, err
	}
	p.ContentType = contentType
	f, err := s.Files.UploadBytes(q.Context(), entity, key, p, spool)
	if err != nil {
		return nil, err
	}
	q.file = f.ID
	out, err := s.describe(q, &f)
	return &answer{http.StatusCreated, out}, err
}

func (s *server) checkQuota(q *request, entity, key string) error {
	ctx, cancel := context.WithTimeout(q.Context(), requestTimeout)
	defer cancel()
	return s.Files.CheckQuota(ctx, entity, key, max(q.ContentLength, 0))
}

func (s *server) tooLong() error {
	return newProblem(http.StatusRequestEntityTooLarge, "the file is too large")
}

func (q *request) fileType() (string, error) {
	contentType := q.Header.Get("Content-Type")
	if media, _, _ := mime.ParseMediaType(contentType); media == "multipart/form-data" {
		return "", newProblem(http.StatusUnsupportedMediaType, "the body is a form: send only the bytes of the file, with their own Content-Type")
	}
	if contentType == "" {
		contentType = "application/octet-stream"
	}
	return contentType, checkType(contentType)
}

func (s *server) receive(q *request, spool io.WriteSeeker) (p files.Promise, err error) {
	sum := sha256.New()
	p.Size, err = io.Copy(io.MultiWriter(spool, sum), http.MaxBytesReader(q.w, q.Body, min(s.MaxSize, maxPut)))
	if _, long := errors.AsType[*http.MaxBytesError](err); long {
		return p, s.tooLong()
	}
	if errors.Is(err, errFull) {
		return p, err
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return p, errSlow
	}
	if err != nil {
		return p, newProblem(http.StatusBadRequest, "the request body is incomplete")
	}
	sum.Sum(p.SHA256[:0])
	_, err = spool.Seek(0, io.SeekStart)
	return p, err
}
