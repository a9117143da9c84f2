package files

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"time"
)

// Orphan is an object that is named like a file but has no row, or a multipart upload if UploadID
// is set.
type Orphan struct{ Key, UploadID string }

// Orphans maps each orphan to the time at which an audit first saw it.
type Orphans map[Orphan]time.Time

const (
	// orphanGrace is the time between the first report of an orphan and its removal.
	orphanGrace = 7 * 24 * time.Hour
	// maxOrphans is the number of orphans above which an audit removes none.
	maxOrphans    = 100
	maxOrphanKeys = 10
)

// KeepsOrphans reports whether there are too many orphans to remove any: above Limit if set,
// otherwise above 100 or 1 % of all objects. Many orphans suggest that the index was restored from
// a backup.
func (r *AuditReport) KeepsOrphans(o AuditOptions) bool {
	if o.Limit > 0 {
		return r.Orphans > o.Limit
	}
	return r.Orphans > maxOrphans || r.Orphans*100 > r.Objects
}

func (a *audit) addOrphan(key, uploadID string) {
	a.report.Orphans++
	if len(a.report.OrphanKeys) < maxOrphanKeys {
		a.report.OrphanKeys = append(a.report.OrphanKeys, key)
	}
	if int64(len(a.orphans)) <= max(a.options.Limit, maxOrphans) {
		a.orphans = append(a.orphans, Orphan{key, uploadID})
	}
}

func (a *audit) removeOrphans(ctx context.Context) error {
	seen, now, keep := Orphans{}, a.now(), a.report.KeepsOrphans(a.options)
	for _, o := range a.orphans {
		first, known := a.options.Orphans[o]
		if !known {
			first = now
		}
		seen[o] = first
		if keep || a.options.Limit == 0 && now.Sub(first) < orphanGrace {
			continue
		}
		if err := a.recordFailure(ctx, o.Key, a.removeOrphan(ctx, o, first)); err != nil {
			return err
		}
	}
	if a.options.Orphans != nil {
		clear(a.options.Orphans)
		maps.Copy(a.options.Orphans, seen)
	}
	return nil
}

// removeOrphan skips an orphan if a rebuild has written its row.
func (a *audit) removeOrphan(ctx context.Context, o Orphan, first time.Time) error {
	id, _ := a.ID(o.Key)
	if _, err := a.Index.Load(ctx, id); !errors.Is(err, ErrNotFound) {
		return err
	}
	var err error
	if o.UploadID == "" {
		err = a.Objects.Remove(ctx, o.Key)
	} else {
		err = a.Objects.Abort(ctx, o.Key, o.UploadID)
	}
	if err != nil {
		return err
	}
	a.report.Removed++
	if a.Logger != nil {
		a.Logger.LogAttrs(ctx, slog.LevelWarn, "files: removed an object or upload without a row", slog.String("key", o.Key),
			slog.String("upload", o.UploadID), slog.Time("first_seen", first))
	}
	return nil
}
