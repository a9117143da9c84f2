package files

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/google/uuid"
)

// PartSizer is implemented by Objects that know how an object was uploaded in parts.
type PartSizer interface {
	// PartSize returns the number of bytes of the object's first part.
	PartSize(ctx context.Context, key string) (int64, error)
}

// RebuildOptions configure a rebuild.
type RebuildOptions struct {
	DryRun   bool                 // write no row
	Progress func(*RebuildReport) // if set, it is called for each object of the listing
}

// RebuildReport counts what a rebuild did.
type RebuildReport struct {
	Objects int64 `json:"objects"` // with the name of a file
	Rebuilt int64 `json:"rebuilt"` // had no row
	Kept    int64 `json:"kept"`    // their files were deleted: the undelete window begins again
	// Skipped are objects without a row that do not show an entity and a SHA-256, so this
	// service did not sign their upload. SkippedKeys names the first of them.
	Skipped     int64    `json:"skipped"`
	SkippedKeys []string `json:"skipped_keys,omitempty"`
}

// Rebuild writes an Indexed row for each listed object that has the name of a file but no
// row, from the metadata of the object. It is for an index that was restored from a backup:
// quotas do not bound it, and files that were deleted since the backup return. If the row
// is Deleted, the undelete window begins again, because the file may have been undeleted
// since the backup. The store must accept signed uploads only, because anyone could have
// written the metadata otherwise.
func (s *Service) Rebuild(ctx context.Context, objects iter.Seq2[Listed, error], o RebuildOptions) (r RebuildReport, err error) {
	for listed, err := range objects {
		if err != nil {
			return r, fmt.Errorf("files: list the bucket: %w", err)
		}
		id, ours := s.ID(listed.Key)
		if !ours {
			continue
		}
		r.Objects++
		if o.Progress != nil {
			o.Progress(&r)
		}
		if err := s.rebuild(ctx, id, listed.Key, o.DryRun, &r); err != nil {
			return r, fmt.Errorf("files: rebuild the row of %s: %w", listed.Key, err)
		}
	}
	return r, nil
}

func (s *Service) rebuild(ctx context.Context, id, key string, dryRun bool, r *RebuildReport) error {
	row, err := s.Index.Load(ctx, id)
	switch {
	case err == nil && row.State == Deleted:
		r.Kept++
		if !dryRun {
			_, err = s.change(ctx, id, func(f *File) (File, error) { return f.windowRestarted(&s.Times, s.now()) })
		}
		return err
	case !errors.Is(err, ErrNotFound):
		return err
	}
	f, err := s.describe(ctx, id, key)
	switch {
	case errors.Is(err, errNotSigned):
		r.Skipped++
		if len(r.SkippedKeys) < maxOrphanKeys {
			r.SkippedKeys = append(r.SkippedKeys, key)
		}
		return nil
	case errors.Is(err, ErrNotFound): // removed since it was listed
		return nil
	case err != nil:
		return err
	}
	r.Rebuilt++
	if dryRun {
		return nil
	}
	unlimited := *s
	unlimited.Limit = nil
	if _, err := unlimited.apply(ctx, nil, f, false); err != nil {
		return err
	}
	_, err = s.Reconcile(ctx, id, false) // an audit may have removed the object meanwhile
	return err
}

// errNotSigned: the object does not show what a signed upload puts into its metadata.
var errNotSigned = errors.New("the object's metadata has no entity or no SHA-256")

// describe returns the row that the upload of an object would have led to.
func (s *Service) describe(ctx context.Context, id, key string) (File, error) {
	seen, err := s.Objects.Stat(ctx, key)
	switch {
	case err != nil:
		return File{}, err
	case !seen.Found:
		return File{}, ErrNotFound
	case seen.Entity == "" || seen.SHA256 == [32]byte{}:
		return File{}, errNotSigned
	}
	p := Promise{Size: seen.Size, ContentType: seen.ContentType, SHA256: seen.SHA256}
	if seen.Parts > 0 {
		sizer, ok := s.Objects.(PartSizer)
		if !ok {
			return File{}, errors.New("the store does not show part sizes")
		}
		if p.PartSize, err = sizer.PartSize(ctx, key); err != nil {
			return File{}, err
		}
	}
	now := s.now()
	f := newFile(id, seen.Entity, key, "", p, creationTime(id, now), &s.Times)
	if !f.matches(seen) {
		return File{}, errNotSigned
	}
	return f.move(Indexed, f.multipartCleanupAt(seen), now), nil
}

// creationTime returns the time in the ID of a file, at most now.
func creationTime(id string, now time.Time) time.Time {
	at := time.Unix(uuid.MustParse(id).Time().UnixTime()).UTC()
	if at.After(now) {
		return now
	}
	return at
}
