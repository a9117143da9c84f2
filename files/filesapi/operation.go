package filesapi

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/pawlhq/pawl/files"
)

type operation struct {
	name    string
	subject *Subject
	file    string // for the log
	entity  string
}

func (s *server) run(ctx context.Context, o *operation, do func() (status int, err error)) *problem {
	status, err := do()
	level, attrs := slog.LevelInfo, []slog.Attr{
		slog.String("action", o.name), slog.String("subject", o.subject.Name), slog.String("entity", o.entity), slog.String("file", o.file),
	}
	var p *problem
	if err != nil {
		p = explain(err)
		status = p.Status
		attrs = append(attrs, slog.Any("error", err))
		if status >= http.StatusInternalServerError {
			level = slog.LevelWarn
		}
	}
	s.Logger.LogAttrs(ctx, level, "files", append(attrs, slog.Int("status", status))...)
	return p
}

func checkEntity(entity string) error {
	if !entityPattern.MatchString(entity) {
		return newProblem(http.StatusBadRequest, "an entity must have 1 to 128 letters, digits, dots, dashes and underscores, and must not start with a dot")
	}
	return nil
}

// authorize returns ErrNotFound if the subject may not access the entity.
func (o *operation) authorize(do, entity string) error {
	if err := checkEntity(entity); err != nil {
		return err
	}
	o.entity = entity
	if !o.subject.may(do, entity) {
		return files.ErrNotFound
	}
	return nil
}

func (s *server) loadAuthorized(ctx context.Context, o *operation, do, id string) (files.File, error) {
	if _, ok := s.Files.ID(s.Files.Prefix + id); !ok {
		return files.File{}, files.ErrNotFound
	}
	o.file = id
	f, err := s.Files.Get(ctx, id)
	if err == nil && !o.subject.may(do, f.Entity) {
		err = files.ErrNotFound
	}
	if err != nil {
		return files.File{}, err
	}
	o.entity = f.Entity
	return f, nil
}

func ifVisible(f files.File, err error) (files.File, error) {
	if err == nil && f.State != files.Pending && f.State != files.Indexed && f.State != files.Lost {
		err = files.ErrNotFound
	}
	return f, err
}

func (s *server) getFile(ctx context.Context, o *operation, id string) (files.File, error) {
	return ifVisible(s.loadAuthorized(ctx, o, "read", id))
}

func (s *server) completeFile(ctx context.Context, o *operation, id string) (files.File, error) {
	f, err := ifVisible(s.loadAuthorized(ctx, o, "write", id))
	if err != nil {
		return f, err
	}
	return ifVisible(s.Files.Complete(ctx, f.ID))
}

func (s *server) deleteFile(ctx context.Context, o *operation, id string) (files.File, error) {
	return s.changeDeleted(ctx, o, id, s.Files.Delete)
}

func (s *server) undeleteFile(ctx context.Context, o *operation, id string) (files.File, error) {
	return s.changeDeleted(ctx, o, id, s.Files.Undelete)
}

// changeDeleted can access a Deleted file, unlike other operations.
func (s *server) changeDeleted(ctx context.Context, o *operation, id string, do func(context.Context, string) (files.File, error)) (files.File, error) {
	f, err := s.loadAuthorized(ctx, o, "write", id)
	if err == nil && f.State != files.Deleted {
		_, err = ifVisible(f, nil)
	}
	if err != nil {
		return f, err
	}
	return do(ctx, id)
}

func (s *server) deleteFiles(ctx context.Context, o *operation, entity string) (*deletedJSON, error) {
	if err := o.authorize("write", entity); err != nil {
		return nil, err
	}
	n, err := s.Files.DeleteAll(ctx, entity, maxPage)
	return &deletedJSON{n, n == maxPage}, err
}

func (s *server) beginUpload(ctx context.Context, o *operation, u *uploadJSON, keys []string) (files.File, files.SignedRequest, error) {
	fail := func(err error) (files.File, files.SignedRequest, error) {
		return files.File{}, files.SignedRequest{}, err
	}
	if err := o.authorize("write", u.Entity); err != nil {
		return fail(err)
	}
	p, err := u.promise(s.MaxSize)
	if err != nil {
		return fail(err)
	}
	idempotency, err := idempotencyKey(keys)
	if err != nil {
		return fail(err)
	}
	f, signed, err := s.Files.Upload(ctx, u.Entity, idempotency, p)
	o.file = f.ID
	return f, signed, err
}

type page struct {
	files []files.File
	more  bool
}

const maxPage = 1000

// GraphQL connections permit a limit of 0, which only determines whether there are files.
func (s *server) listFiles(ctx context.Context, o *operation, entity, cursor string, limit int) (p page, err error) {
	if err := o.authorize("read", entity); err != nil {
		return p, err
	}
	if limit < 0 || limit > maxPage {
		return p, newProblem(http.StatusBadRequest, "a page has at most 1000 files")
	}
	after, err := s.cursors.verify(entity, cursor)
	if err != nil {
		return p, err
	}
	found, err := s.Files.Index.List(ctx, entity, after, limit+1)
	return page{found[:min(limit, len(found))], len(found) > limit}, err
}

const downloadURLLife = 5 * time.Minute

func (s *server) downloadURL(ctx context.Context, subject *Subject, f *files.File) (string, error) {
	if f.State != files.Indexed || !subject.may("read", f.Entity) {
		return "", nil
	}
	return s.Files.Objects.SignGet(ctx, f, downloadURLLife)
}
