package server

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/pawlhq/pawl/files"
	"github.com/pawlhq/pawl/files/s3objects"
)

// Audit compares the bucket with the index once; see [files.Service.Audit].
func (s *Server) Audit(ctx context.Context, o files.AuditOptions) (files.AuditReport, error) {
	if !o.DryRun {
		s.objects.AllowProbe(s.Prefix)
	}
	r, err := s.service.Audit(ctx, s.list(ctx), o)
	if err == nil && !o.DryRun && s.Observer != nil {
		s.Observer.Audited(&r)
	}
	return r, err
}

// Rebuild writes the missing rows of an index that was restored from a backup; see
// [files.Service.Rebuild]. If the store accepts forged uploads and trust is false, the error
// matches [s3objects.ErrForgeable].
func (s *Server) Rebuild(ctx context.Context, o files.RebuildOptions, trust bool) (files.RebuildReport, error) {
	objects := s.bucket().AcceptForgeable() // a copy, because the server's own bucket must not accept forgeable stores
	warnings, err := objects.Probe(ctx, s.Prefix)
	if err != nil {
		return files.RebuildReport{}, err
	}
	for _, warning := range warnings {
		if errors.Is(warning, s3objects.ErrForgeable) && !trust {
			return files.RebuildReport{}, fmt.Errorf("the metadata of objects may be forged: %w", warning)
		}
	}
	s.Logger.Warn("files that were deleted after the backup become visible again: delete them again")
	service := *s.service
	service.Objects = objects
	return service.Rebuild(ctx, s.list(ctx), o)
}

// list yields an unlistable object with an unknown size, so an audit sends a HEAD request for it.
func (s *Server) list(ctx context.Context) iter.Seq2[files.Listed, error] {
	return func(yield func(files.Listed, error) bool) {
		for info, err := range s.Store.List(ctx, s.Bucket, s.Prefix, "") {
			if info.Unlistable(err) {
				s.Logger.Warn("the store cannot list an object; skipping it in listings", "error", err)
				info.Size, err = -1, nil
			}
			if !yield(files.Listed{Key: info.Key, Size: info.Size, LastModified: info.ModTime}, err) {
				return
			}
		}
	}
}

func (s *Server) auditDaily(ctx context.Context) {
	orphans := files.Orphans{}
	next := time.NewTimer(firstAuditDelay)
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-next.C:
		}
		r, err := s.Audit(ctx, files.AuditOptions{Orphans: orphans})
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			s.Logger.Warn("the audit is incomplete; the next audit starts in a day", "error", err, "report", r)
		case r.Differences() > 0:
			s.Logger.Warn("an audit found differences between index and bucket", "report", r)
		default:
			s.Logger.Info("audited the files", "objects", r.Objects, "rows", r.Rows)
		}
		next.Reset(auditInterval)
	}
}
