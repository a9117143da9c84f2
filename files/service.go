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

// Objects is the bucket as the service needs it.
type Objects interface {
	// Sign returns how the bytes of a file may be uploaded until a time: once, and
	// as promised, or the store refuses them.
	Sign(ctx context.Context, f *File, until time.Time) (SignedRequest, error)
	// SignGet returns a URL to download a file by, for a time.
	SignGet(ctx context.Context, f *File, life time.Duration) (url string, err error)
	// Put uploads the bytes of a file, unless its object exists.
	Put(ctx context.Context, f *File, body io.ReadSeeker) error
	// Stat asks what is there now. An object that the store cannot read is found, with a
	// size of -1.
	Stat(ctx context.Context, key string) (ObjectInfo, error)
	// Remove removes an object. Of one that is not there it says nothing.
	Remove(ctx context.Context, key string) error
	Multipart
}

// SignedRequest is a request that the store takes without further credentials.
type SignedRequest struct {
	Method  string
	URL     string
	Headers map[string]string // all are signed, and must be sent
	Until   time.Time
}

// Service begins, deletes, finds and looks at files. Its fields are set before it is
// used, and not changed.
type Service struct {
	Index   *Index
	Objects Objects
	Times   Times
	// Prefix begins the keys of all objects.
	Prefix string
	// Limit returns the largest usage that an entity may have; nil: no limit.
	Limit func(entity string) Usage
	// Now and NewID are time.Now and a UUID of version 7 if they are nil. A simulation
	// has its own.
	Now   func() time.Time
	NewID func() string
	// Logger has a line for each file that a look moves; nil: none is written.
	Logger *slog.Logger
}

// now is in whole milliseconds, as rows are stored.
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

// apply writes the row that follows another one, which is nil for a new file.
func (s *Service) apply(ctx context.Context, from *File, next File, drop bool) (File, error) {
	return s.Index.Apply(ctx, Change{From: from, Next: next, Drop: drop, Limit: s.limit(next.Entity)})
}

func (s *Service) limit(entity string) Usage {
	if s.Limit == nil {
		return Usage{math.MaxInt64, math.MaxInt64}
	}
	return s.Limit(entity)
}

// CheckQuota returns ErrQuota if the quota of an entity has no room for a file now, unless
// the idempotency key has begun one.
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

// Upload begins the upload of a file, and returns its row and how to send its bytes.
//
// With an idempotency key a repeated call returns the same file, with a URL that
// lives no longer than the first one. Of a file whose bytes have come the URL is
// empty.
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

// begin signs first and writes the row after: so no URL outlives what the row says.
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

// resume answers a repeated upload.
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

// sign signs the upload of a file in one piece.
func (s *Service) sign(ctx context.Context, f *File) (SignedRequest, error) {
	if f.PartSize > 0 {
		return SignedRequest{}, nil
	}
	return s.Objects.Sign(ctx, f, f.PutBy)
}

// requestTimeout is how long a look may take, and what follows an upload through the service:
// an index that takes no writes is asked again and again until then.
const requestTimeout = 30 * time.Second

// Reconcile moves the row of a file by what the bucket holds. notice says that a
// notification, or somebody who has uploaded, asks for it. Of an ID without a row it
// returns ErrNotFound.
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
		s.logMove(ctx, &f, &next, seen)
		if next.State != Expired || !seen.Found || f.State == Expired {
			return next, nil
		}
		// What lies there is no file. Removing it now, and not with the tombstone, keeps
		// it from disturbing listings of the bucket.
	}
}

// observe removes what may be removed, and asks what is there then. After LandBy it ends
// the uploads of a file in parts before it asks: what it does not find then is not
// completed later.
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

// ID returns the ID of the file whose object has a key, and whether the key is one
// of this service's.
func (s *Service) ID(key string) (string, bool) {
	id, ok := strings.CutPrefix(key, s.Prefix)
	u, err := uuid.Parse(id)
	return id, ok && err == nil && u.Version() == 7 && u.String() == id
}

// Get returns a file.
func (s *Service) Get(ctx context.Context, id string) (File, error) { return s.Index.Load(ctx, id) }

// Delete hides a file at once, and removes its object when it cannot be undeleted
// any more. What is deleted already stays so, under a new nonce: an undelete that began
// before, whose answer was lost, cannot land any more.
func (s *Service) Delete(ctx context.Context, id string) (File, error) {
	return s.change(ctx, id, func(f *File) (File, error) {
		if f.State == Deleted {
			return f.move(Deleted, f.DueAt, s.now()), nil
		}
		return f.deleted(&s.Times, s.now())
	})
}

// DeleteAll deletes up to limit files of an entity. It returns how many; limit: there may be more. A file
// whose upload begins meanwhile may stay.
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

// Undelete brings a deleted file back, as long as its object is there.
func (s *Service) Undelete(ctx context.Context, id string) (File, error) {
	return s.change(ctx, id, func(f *File) (File, error) {
		if f.State == Indexed { // as it is, but a delete that began before cannot land any more
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

// errNoChange: the file is as it should be already.
var errNoChange = errors.New("nothing to change")

// change loads, decides and writes, and begins again where another was faster.
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

// UploadBytes uploads bytes on behalf of a client that cannot use a signed URL, and
// returns the file when it is visible. Where the upload fails its row expires at
// once; what lands nevertheless is removed.
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

// expireFailedUpload expires an upload that broke off.
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
