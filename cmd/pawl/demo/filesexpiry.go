package demo

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/pawlhq/pawl/files"
	"github.com/pawlhq/pawl/proof/rig"
)

// expiryDay exceeds the undelete window and the time for an upload.
const expiryDay = 25 * time.Hour

// advanceDay makes the rows a day older, so that services remove deleted bytes and expire uploads.
// A service checks due files only when it starts, so advanceDay restarts services until none is
// due.
func (s *filesScenario) advanceDay(ctx context.Context) error {
	if err := s.backdateRows(ctx); err != nil {
		return err
	}
	err := rig.Until(ctx, 100*time.Millisecond, func() (bool, error) {
		rows, err := s.rows(ctx)
		for _, f := range rows {
			if f.State != files.Indexed && f.State != files.Gone && f.State != files.Expired {
				return false, s.restart(ctx)
			}
		}
		return err == nil, err
	})
	if err != nil {
		return err
	}
	for _, a := range s.uploads {
		switch a.state {
		case files.Pending:
			a.state = files.Expired
		case files.Deleted:
			a.state, a.stored = files.Gone, false
			_, status, err := s.client.Call(ctx, http.MethodPost, "/v1/files/"+a.id+"/undelete", nil, nil)
			if err != nil {
				return err
			}
			s.wantStatus(a, "POST /undelete a day later", status, http.StatusNotFound)
		}
	}
	s.screen.done("a day later in the index, the bytes of deleted files are removed, and missing uploads are expired")
	return nil
}

func (s *filesScenario) backdateRows(ctx context.Context) error {
	rows, err := s.rows(ctx)
	if err != nil {
		return err
	}
	for _, f := range rows {
		for f.State == files.Pending || f.State == files.Deleted {
			next := f
			for _, at := range []*time.Time{&next.PutBy, &next.LandBy, &next.DeletedAt, &next.DueAt} {
				if !at.IsZero() {
					*at = at.Add(-expiryDay)
				}
			}
			_, err := s.index.Apply(ctx, files.Change{From: &f, Next: next})
			if err == nil {
				break
			}
			if errors.Is(err, files.ErrConflict) { // a service changed the row first
				f, err = s.index.Load(ctx, f.ID)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *filesScenario) rows(ctx context.Context) (map[string]files.File, error) {
	rows := map[string]files.File{}
	for f, err := range s.index.Scan(ctx) {
		if err != nil {
			return nil, err
		}
		rows[f.ID] = f
	}
	return rows, nil
}

func (s *filesScenario) restart(ctx context.Context) error {
	if _, err := s.fleet.start(ctx); err != nil {
		return err
	}
	for _, w := range s.fleet.all() {
		if !w.Ended() {
			w.Terminate()
			<-w.Done()
			return nil
		}
	}
	return nil
}
