package files

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"iter"
	"time"
)

// Multipart is what the service needs of the bucket for files in parts.
type Multipart interface {
	// Begin begins an upload in parts, and returns its ID.
	Begin(ctx context.Context, f *File) (uploadID string, err error)
	// SignPart returns how a part, counted from 1, may be uploaded until a time, as
	// often as one likes: with this SHA-256, or the store refuses it.
	SignPart(ctx context.Context, f *File, number int, sum [32]byte, until time.Time) (SignedRequest, error)
	// Complete makes the object of a file of the parts that were uploaded, if all were,
	// unless it exists. Only a look tells whether it did.
	Complete(ctx context.Context, f *File) error
	// Abort ends an upload in parts: when it has answered, no part and no completion
	// lands any more. Of an upload that is over it says nothing.
	Abort(ctx context.Context, key, uploadID string) error
	// Uploads yields the uploads in parts that are open, of all keys with a prefix. If the
	// prefix is not a whole key, it may also yield some that are over.
	Uploads(ctx context.Context, prefix string) iter.Seq2[OpenUpload, error]
}

// OpenUpload is an upload in parts that was neither completed nor aborted.
type OpenUpload struct {
	Key, ID string
	Begun   time.Time // by the store's clock
}

// CompositeSHA256 is the SHA-256 of a file in parts.
func CompositeSHA256(sums [][32]byte) (sum [32]byte) {
	h := sha256.New()
	for _, part := range sums {
		_, _ = h.Write(part[:]) // never fails
	}
	h.Sum(sum[:0])
	return sum
}

// UploadParts begins the upload of a file in parts whose SHA-256s are sums, and
// returns its row and how to send each part. [Service.Complete] is to follow. Of a
// file whose bytes have come there are no requests.
//
// The row is written before the upload is begun, so that a look at the row finds the
// upload, whatever becomes of this process, and once more with the upload's ID. An
// idempotency key does what it does for [Service.Upload].
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

// beginParts begins the upload of a file that has none yet. Of two that do so at once
// one is the file's. A look ends the other, which has no parts, after LandBy.
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

// Complete makes a file of its parts, if they have come, and looks at it. Of a file in
// one piece it is a look.
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

// isOpen reports whether an upload from a list of all keys is open, by the list of its own
// key. MinIO serves the list of all keys from memory. If a client goes away while MinIO
// completes its upload, that list may keep the upload for a day.
func (s *Service) isOpen(ctx context.Context, u *OpenUpload) (bool, error) {
	for of, err := range s.Objects.Uploads(ctx, u.Key) {
		if err != nil || of.Key == u.Key && of.ID == u.ID {
			return err == nil, err
		}
	}
	return false, nil
}

// abortUploads ends all uploads in parts of a file: its own, and those that processes
// began which did not live to write it down.
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
