package files

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/google/uuid"
)

// PartSizer is implemented by Objects that can return the part size of an object.
type PartSizer interface {
	// PartSize returns the size in bytes of the object's first part.
	PartSize(ctx context.Context, key string) (int64, error)
}

// RebuildOptions configure a rebuild.
type RebuildOptions struct {
	DryRun   bool                 // report missing rows without writing
	Progress func(*RebuildReport) // called for each listed object; may be nil
}

// RebuildReport counts the results of a rebuild.
type RebuildReport struct {
	Objects int64 `json:"objects"` // objects named like a file
	Rebuilt int64 `json:"rebuilt"` // rows that were missing
	Kept    int64 `json:"kept"`    // deleted files whose undelete window was restarted
	// Skipped counts objects without a row that this service did not sign. SkippedKeys contains the
	// first keys.
	Skipped     int64    `json:"skipped"`
	SkippedKeys []string `json:"skipped_keys,omitempty"`
}

// Rebuild writes an Indexed row for each object that is named like a file but has no row. Call it
// after a restore of the index from a backup. Files that were deleted after the backup become
// visible again. The undelete window of Deleted rows restarts, because they may have been undeleted
// after the backup. Use it only if the store rejects forged uploads, because rows come from
// metadata.
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
	case errors.Is(err, ErrNotFound): // removed after it was listed
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
	_, err = s.Reconcile(ctx, id, false) // an audit may have removed the object
	return err
}

var errNotSigned = errors.New("the object's metadata has no entity or no SHA-256")

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

func creationTime(id string, now time.Time) time.Time {
	at := time.Unix(uuid.MustParse(id).Time().UnixTime()).UTC()
	if at.After(now) {
		return now
	}
	return at
}
