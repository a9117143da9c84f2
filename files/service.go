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
	// Look asks what is there now. An object that the store cannot read is found, with a
	// size of -1.
	Look(ctx context.Context, key string) (Seen, error)
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

// Fits returns ErrQuota if the quota of an entity has no room for a file now, unless
// the idempotency key has begun one.
func (s *Service) Fits(ctx context.Context, entity, idempotency string, size int64) error {
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
	f := begin(id, entity, s.Prefix+id, idempotency, p, s.now(), &s.Times)
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
		return File{}, SignedRequest{}, fmt.Errorf("%w: the time to upload is over; begin again with another idempotency key", ErrState)
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

// patience is how long a look may take, and what follows an upload through the service:
// an index that takes no writes is asked again and again until then.
const patience = 30 * time.Second

// Look moves the row of a file by what the bucket holds. notice says that a
// notification, or somebody who has uploaded, asks for it. Of an ID without a row it
// returns ErrNotFound.
func (s *Service) Look(ctx context.Context, id string, notice bool) (File, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		f, err := s.Index.Load(ctx, id)
		if err != nil {
			return File{}, err
		}
		seen, err := s.see(ctx, &f)
		if err != nil {
			return File{}, err
		}
		next, what := f.looked(seen, notice, &s.Times, s.now())
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
		s.report(ctx, &f, &next, seen)
		if next.State != Expired || !seen.Found || f.State == Expired {
			return next, nil
		}
		// What lies there is no file. Removing it now, and not with the tombstone, keeps
		// it from disturbing listings of the bucket.
	}
}

// see removes what may be removed, and asks what is there then. After LandBy it ends
// the uploads of a file in parts before it asks: what it does not find then is not
// completed later.
func (s *Service) see(ctx context.Context, f *File) (Seen, error) {
	if f.removable() {
		if err := s.endUploads(ctx, f); err != nil {
			return Seen{}, err
		}
		if err := s.Objects.Remove(ctx, f.Key); err != nil {
			return Seen{}, err
		}
	}
	seen, err := s.Objects.Look(ctx, f.Key)
	if err != nil || f.removable() || f.PartSize == 0 || seen.Date.Before(f.LandBy) {
		return seen, err
	}
	if err := s.endUploads(ctx, f); err != nil {
		return Seen{}, err
	}
	return s.Objects.Look(ctx, f.Key)
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
			return f.move(Deleted, f.LookAt, s.now()), nil
		}
		return f.deleted(&s.Times, s.now())
	})
}

// DeleteAll deletes up to limit files of an entity. It returns how many; limit: there may be more. A file
// whose upload begins meanwhile may stay.
func (s *Service) DeleteAll(ctx context.Context, entity string, limit int) (int, error) {
	held, err := s.Index.held(ctx, entity, limit)
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
		seen, err := s.Objects.Look(ctx, f.Key)
		if err != nil {
			return *f, err
		}
		return f.undeleted(seen, s.now())
	})
}

// errSame: the file is as it should be already.
var errSame = errors.New("nothing to change")

// change loads, decides and writes, and begins again where another was faster.
func (s *Service) change(ctx context.Context, id string, decide func(*File) (File, error)) (File, error) {
	for {
		f, err := s.Index.Load(ctx, id)
		if err != nil {
			return File{}, err
		}
		next, err := decide(&f)
		if errors.Is(err, errSame) {
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

// Store uploads bytes on behalf of a client that cannot use a signed URL, and
// returns the file when it is visible. Where the upload fails its row expires at
// once; what lands nevertheless is removed.
func (s *Service) Store(ctx context.Context, entity, idempotency string, p Promise, body io.ReadSeeker) (File, error) {
	begin, begun := context.WithTimeout(ctx, patience)
	f, signed, err := s.Upload(begin, entity, idempotency, p)
	begun()
	if err != nil || signed.URL == "" {
		return f, err
	}
	put, cancel := context.WithDeadline(ctx, f.PutBy)
	failed := s.Objects.Put(put, &f, body)
	cancel()
	seen, err := s.Look(context.WithoutCancel(ctx), f.ID, true)
	if err == nil && seen.State == Indexed {
		return seen, nil
	}
	return File{}, errors.Join(ErrBroken, failed, err, s.abandon(context.WithoutCancel(ctx), f.ID))
}

// abandon expires an upload that broke off.
func (s *Service) abandon(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	_, err := s.change(ctx, id, func(f *File) (File, error) {
		next, ok := f.broken(&s.Times, s.now())
		if !ok {
			return *f, errSame
		}
		return next, nil
	})
	return err
}
