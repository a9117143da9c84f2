package files

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"iter"
	"time"
)

// Multipart is the multipart interface of the bucket.
type Multipart interface {
	// Begin starts a multipart upload and returns its ID.
	Begin(ctx context.Context, f *File) (uploadID string, err error)
	// SignPart returns a request that uploads a part with the given SHA-256. Part numbers start at 1.
	// The request may be repeated until the given time.
	SignPart(ctx context.Context, f *File, number int, sum [32]byte, until time.Time) (SignedRequest, error)
	// Complete assembles the object if all parts exist and the object does not. Reconcile the file
	// even after success.
	Complete(ctx context.Context, f *File) error
	// Abort aborts a multipart upload. Afterwards, neither a part nor a completion can land. Aborting
	// a finished upload is not an error.
	Abort(ctx context.Context, key, uploadID string) error
	// Uploads yields the open multipart uploads of a prefix. If the prefix is not a complete key,
	// finished uploads may be included.
	Uploads(ctx context.Context, prefix string) iter.Seq2[OpenUpload, error]
}

// OpenUpload is a multipart upload that was neither completed nor aborted.
type OpenUpload struct {
	Key, ID string
	Begun   time.Time // by the store's clock
}

// CompositeSHA256 returns the SHA-256 of the concatenated SHA-256s of parts.
func CompositeSHA256(sums [][32]byte) (sum [32]byte) {
	h := sha256.New()
	for _, part := range sums {
		_, _ = h.Write(part[:]) // never fails
	}
	h.Sum(sum[:0])
	return sum
}

// UploadParts is [Service.Upload] for a multipart file. It returns one request for each part, or
// none if the bytes have arrived. Call [Service.Complete] afterwards.
//
// The row is written first, so that a crash does not hide the multipart upload from
// reconciliations.
func (s *Service) UploadParts(ctx context.Context, entity, idempotency string, p Promise, sums [][32]byte) (File, []SignedRequest, error) {
	f, _, err := s.Upload(ctx, entity, idempotency, p)
	if err == nil && f.State == Pending && f.UploadID == "" {
		f, err = s.beginParts(ctx, &f)
	}
	if err != nil || f.State != Pending {
		return f, nil, err
	}
	signed := make([]SignedRequest, len(sums))
	for i, sum := range sums {
		if signed[i], err = s.Objects.SignPart(ctx, &f, i+1, sum, f.PutBy); err != nil {
			return File{}, nil, err
		}
	}
	return f, signed, nil
}

// Two calls of beginParts may race. Then the row gets the ID of one upload. A reconciliation after
// LandBy aborts the other, which has no parts.
func (s *Service) beginParts(ctx context.Context, f *File) (File, error) {
	begin, cancel := context.WithDeadline(ctx, f.PutBy)
	defer cancel()
	id, err := s.Objects.Begin(begin, f)
	if err != nil {
		return File{}, err
	}
	return s.change(ctx, f.ID, func(f *File) (File, error) {
		next := *f
		switch {
		case f.State != Pending:
			return next, fmt.Errorf("%w: the file is %s", ErrState, f.State)
		case f.UploadID != "":
			return next, errNoChange
		}
		next.UploadID, next.UpdatedAt = id, s.now()
		return next, nil
	})
}

// Complete assembles a multipart file if its parts have arrived, and reconciles any file.
func (s *Service) Complete(ctx context.Context, id string) (File, error) {
	f, err := s.Index.Load(ctx, id)
	if err != nil {
		return File{}, err
	}
	var failed error
	if f.State == Pending && f.UploadID != "" {
		failed = s.Objects.Complete(ctx, &f)
	}
	f, err = s.Reconcile(ctx, id, true)
	if err == nil && f.State != Pending {
		failed = nil
	}
	return f, errors.Join(failed, err)
}

// isOpen lists only the uploads of u.Key. MinIO serves the list of all keys from memory, and may
// show a completed upload there for a day.
func (s *Service) isOpen(ctx context.Context, u *OpenUpload) (bool, error) {
	for of, err := range s.Objects.Uploads(ctx, u.Key) {
		if err != nil || of.Key == u.Key && of.ID == u.ID {
			return err == nil, err
		}
	}
	return false, nil
}

// abortUploads also aborts uploads whose process crashed before it stored the upload ID.
func (s *Service) abortUploads(ctx context.Context, f *File) error {
	if f.PartSize == 0 {
		return nil
	}
	if f.UploadID != "" {
		if err := s.Objects.Abort(ctx, f.Key, f.UploadID); err != nil {
			return err
		}
	}
	for u, err := range s.Objects.Uploads(ctx, f.Key) {
		if err == nil && u.Key == f.Key {
			err = s.Objects.Abort(ctx, u.Key, u.ID)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
