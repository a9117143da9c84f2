package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"strings"
	"time"

	"github.com/google/uuid"
)

// Objects is the bucket.
type Objects interface {
	// Sign returns a request that uploads a file. The store must accept it once, until the given
	// time, and only with the promised bytes.
	Sign(ctx context.Context, f *File, until time.Time) (SignedRequest, error)
	// SignGet returns a download URL that is valid for life.
	SignGet(ctx context.Context, f *File, life time.Duration) (url string, err error)
	// Put uploads a file if its object does not exist.
	Put(ctx context.Context, f *File, body io.ReadSeeker) error
	// Stat returns the state of an object. If the object is unreadable, Found is true and Size is -1.
	Stat(ctx context.Context, key string) (ObjectInfo, error)
	// Remove deletes an object. Deleting a missing object is not an error.
	Remove(ctx context.Context, key string) error
	Multipart
}

// SignedRequest is a presigned request. It needs no other credentials.
type SignedRequest struct {
	Method  string
	URL     string
	Headers map[string]string // the client must send them
	Until   time.Time
}

// Service creates, deletes, restores and reconciles files. Set its fields before the first use.
type Service struct {
	Index   *Index
	Objects Objects
	Times   Times
	// Prefix begins all object keys.
	Prefix string
	// Limit returns the maximum usage of an entity. Nil means no limit.
	Limit func(entity string) Usage
	// Now and NewID are for simulations. The defaults are time.Now and UUIDs of version 7.
	Now   func() time.Time
	NewID func() string
	// Changed is called after a reconciliation has changed a state. It may be nil.
	Changed func(to State)
	// Logger logs state changes by reconciliations. Nil disables logging.
	Logger *slog.Logger
}

// now has the precision of stored rows.
func (s *Service) now() time.Time {
	now := time.Now
	if s.Now != nil {
		now = s.Now
	}
	return now().UTC().Truncate(time.Millisecond)
}

func (s *Service) newID() string {
	if s.NewID != nil {
		return s.NewID()
	}
	return uuid.Must(uuid.NewV7()).String()
}

func (s *Service) apply(ctx context.Context, from *File, next File, drop bool) (File, error) {
	return s.Index.Apply(ctx, Change{From: from, Next: next, Drop: drop, Limit: s.limit(next.Entity)})
}

func (s *Service) limit(entity string) Usage {
	if s.Limit == nil {
		return Usage{math.MaxInt64, math.MaxInt64}
	}
	return s.Limit(entity)
}

// CheckQuota returns ErrQuota if a file of the given size would exceed the quota, unless its
// idempotency key already has a file.
func (s *Service) CheckQuota(ctx context.Context, entity, idempotency string, size int64) error {
	used, err := s.Index.Used(ctx, entity)
	if err != nil || max(size, MinCharge) <= s.limit(entity).Bytes-used.Bytes {
		return err
	}
	if idempotency != "" {
		if _, err := s.Index.byIdempotency(ctx, entity, idempotency); !errors.Is(err, ErrNotFound) {
			return err
		}
	}
	return ErrQuota
}

// Upload creates a file and signs the request that sends its bytes.
//
// A repeated call with the same idempotency key returns the same file and deadline. If the bytes
// have already arrived, the URL is empty.
func (s *Service) Upload(ctx context.Context, entity, idempotency string, p Promise) (File, SignedRequest, error) {
	if idempotency != "" {
		f, err := s.Index.byIdempotency(ctx, entity, idempotency)
		if err == nil && f.State != Expired {
			return s.resume(ctx, f, p)
		}
		if err != nil && !errors.Is(err, ErrNotFound) {
			return File{}, SignedRequest{}, err
		}
	}
	return s.begin(ctx, entity, idempotency, p)
}

// begin signs the URL before it writes the row, so that no URL outlives the row's deadline.
func (s *Service) begin(ctx context.Context, entity, idempotency string, p Promise) (File, SignedRequest, error) {
	id := s.newID()
	f := newFile(id, entity, s.Prefix+id, idempotency, p, s.now(), &s.Times)
	signed, err := s.sign(ctx, &f)
	if err != nil {
		return File{}, SignedRequest{}, err
	}
	f, err = s.apply(ctx, nil, f, false)
	switch {
	case errors.Is(err, errKeyTaken):
		return s.resume(ctx, f, p)
	case err != nil:
		return File{}, SignedRequest{}, err
	}
	return f, signed, nil
}

func (s *Service) resume(ctx context.Context, f File, p Promise) (File, SignedRequest, error) {
	switch {
	case f.Promise != p:
		return File{}, SignedRequest{}, ErrKeyUsed
	case f.State == Indexed:
		return f, SignedRequest{}, nil
	case f.State != Pending:
		return File{}, SignedRequest{}, fmt.Errorf("%w: the upload with this idempotency key is %s", ErrState, f.State)
	case !s.now().Before(f.PutBy):
		return File{}, SignedRequest{}, fmt.Errorf("%w: the upload URL has expired: start again with another idempotency key", ErrState)
	}
	signed, err := s.sign(ctx, &f)
	return f, signed, err
}

func (s *Service) sign(ctx context.Context, f *File) (SignedRequest, error) {
	if f.PartSize > 0 {
		return SignedRequest{}, nil
	}
	return s.Objects.Sign(ctx, f, f.PutBy)
}

// requestTimeout limits a reconciliation and the index calls of UploadBytes, which repeat while the
// index rejects writes.
const requestTimeout = 30 * time.Second

// Reconcile changes the row of a file according to its object, or returns ErrNotFound. notified is
// true if a notification or the uploading client triggers the call.
func (s *Service) Reconcile(ctx context.Context, id string, notified bool) (File, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	for {
		f, err := s.Index.Load(ctx, id)
		if err != nil {
			return File{}, err
		}
		seen, err := s.observe(ctx, &f)
		if err != nil {
			return File{}, err
		}
		next, what := f.reconciled(seen, notified, &s.Times, s.now())
		if what == unchanged {
			return f, nil
		}
		next, err = s.apply(ctx, &f, next, what == dropped)
		if errors.Is(err, ErrConflict) {
			continue
		}
		if err != nil {
			return File{}, err
		}
		if s.Changed != nil && next.State != f.State {
			s.Changed(next.State)
		}
		s.logTransition(ctx, &f, &next, seen)
		if next.State != Expired || !seen.Found || f.State == Expired {
			return next, nil
		}
		// The object is not the promised file. Remove it now, because it may disturb listings.
	}
}

// observe removes the object if the file's state permits it, and returns the object's state. At or
// after LandBy, it aborts multipart uploads. Then it reads the object again, because an upload may
// have completed before the abort.
func (s *Service) observe(ctx context.Context, f *File) (ObjectInfo, error) {
	if f.objectRemovable() {
		if err := s.abortUploads(ctx, f); err != nil {
			return ObjectInfo{}, err
		}
		if err := s.Objects.Remove(ctx, f.Key); err != nil {
			return ObjectInfo{}, err
		}
	}
	seen, err := s.Objects.Stat(ctx, f.Key)
	if err != nil || f.objectRemovable() || f.PartSize == 0 || seen.Date.Before(f.LandBy) {
		return seen, err
	}
	if err := s.abortUploads(ctx, f); err != nil {
		return ObjectInfo{}, err
	}
	return s.Objects.Stat(ctx, f.Key)
}

// ID returns the ID of the file with an object key, or false if the key is foreign.
func (s *Service) ID(key string) (string, bool) {
	id, ok := strings.CutPrefix(key, s.Prefix)
	u, err := uuid.Parse(id)
	return id, ok && err == nil && u.Version() == 7 && u.String() == id
}

// Get returns a file, or ErrNotFound.
func (s *Service) Get(ctx context.Context, id string) (File, error) { return s.Index.Load(ctx, id) }

// Delete hides a file immediately. Its object is removed after the undelete window. A repeated
// Delete writes a new nonce, so that an undelete in flight cannot land.
func (s *Service) Delete(ctx context.Context, id string) (File, error) {
	return s.change(ctx, id, func(f *File) (File, error) {
		if f.State == Deleted {
			return f.move(Deleted, f.DueAt, s.now()), nil
		}
		return f.deleted(&s.Times, s.now())
	})
}

// DeleteAll deletes up to limit files of an entity and returns their number. If that is limit,
// there may be more. Files created during the call may remain.
func (s *Service) DeleteAll(ctx context.Context, entity string, limit int) (int, error) {
	held, err := s.Index.listDeletable(ctx, entity, limit)
	if err != nil {
		return 0, err
	}
	for i := range held {
		_, err := s.Delete(ctx, held[i])
		if err != nil && !errors.Is(err, ErrState) && !errors.Is(err, ErrNotFound) {
			return i, err
		}
	}
	return len(held), nil
}

// Undelete restores a deleted file if its object still exists.
func (s *Service) Undelete(ctx context.Context, id string) (File, error) {
	return s.change(ctx, id, func(f *File) (File, error) {
		if f.State == Indexed { // write a new nonce, so that a delete in flight cannot land
			return *f, nil
		}
		if f.State != Deleted {
			return *f, ErrState
		}
		seen, err := s.Objects.Stat(ctx, f.Key)
		if err != nil {
			return *f, err
		}
		return f.undeleted(seen, s.now())
	})
}

var errNoChange = errors.New("nothing to change")

func (s *Service) change(ctx context.Context, id string, decide func(*File) (File, error)) (File, error) {
	for {
		f, err := s.Index.Load(ctx, id)
		if err != nil {
			return File{}, err
		}
		next, err := decide(&f)
		if errors.Is(err, errNoChange) {
			return f, nil
		}
		if err != nil {
			return File{}, err
		}
		next, err = s.apply(ctx, &f, next, false)
		if !errors.Is(err, ErrConflict) {
			return next, err
		}
	}
}

// UploadBytes uploads a file for a client that cannot use a signed URL. A failed upload becomes
// Expired, and its object is removed.
func (s *Service) UploadBytes(ctx context.Context, entity, idempotency string, p Promise, body io.ReadSeeker) (File, error) {
	begin, begun := context.WithTimeout(ctx, requestTimeout)
	f, signed, err := s.Upload(begin, entity, idempotency, p)
	begun()
	if err != nil || signed.URL == "" {
		return f, err
	}
	put, cancel := context.WithDeadline(ctx, f.PutBy)
	failed := s.Objects.Put(put, &f, body)
	cancel()
	seen, err := s.Reconcile(context.WithoutCancel(ctx), f.ID, true)
	if err == nil && seen.State == Indexed {
		return seen, nil
	}
	return File{}, errors.Join(ErrInterrupted, failed, err, s.expireFailedUpload(context.WithoutCancel(ctx), f.ID))
}

func (s *Service) expireFailedUpload(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	_, err := s.change(ctx, id, func(f *File) (File, error) {
		next, ok := f.uploadFailed(&s.Times, s.now())
		if !ok {
			return *f, errNoChange
		}
		return next, nil
	})
	return err
}
