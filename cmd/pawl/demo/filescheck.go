package demo

import (
	"bytes"
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/pawlhq/pawl/files"
)

type filesAuditResult struct {
	Moved     map[string]int `json:"moved"` // by their new state
	Leftovers int            `json:"leftovers"`
	Orphans   int            `json:"orphans"`
	Foreign   int            `json:"foreign"`
}

func (f *filesAuditResult) found() int {
	n := f.Leftovers + f.Orphans + f.Foreign
	for _, moved := range f.Moved {
		n += moved
	}
	return n
}

func (s *filesScenario) audit(ctx context.Context, flags ...string) (*filesAuditResult, error) {
	found := &filesAuditResult{}
	return found, s.fleet.runJSON(ctx, found, append([]string{"files", "audit"}, flags...)...)
}

func (s *filesScenario) checkIndex(ctx context.Context) error {
	objects, err := s.store.contents(filesBucket)
	if err != nil {
		return err
	}
	rows, err := s.rows(ctx)
	if err != nil {
		return err
	}
	s.compare(rows, objects)
	if err := s.checkListing(ctx); err != nil {
		return err
	}
	again, err := s.audit(ctx, "--dry-run")
	if err != nil {
		return err
	}
	if again.found() > 0 {
		s.reportWrong("a second audit found %+v", *again)
	}
	if r := &s.report.Files; len(r.Wrong) == 0 {
		s.screen.done("index and bucket agree about %d of %d files, and a second audit finds nothing", r.Right, r.Of)
	}
	return nil
}

// compare counts the files that match the expected state, removes them from its arguments, and
// reports the rest.
func (s *filesScenario) compare(rows map[string]files.File, objects map[string][]byte) {
	r := &s.report.Files
	for _, a := range s.uploads {
		row, body := rows[a.id], objects[filesPrefix+a.id]
		delete(rows, a.id)
		delete(objects, filesPrefix+a.id)
		r.Of++
		switch row.State {
		case files.Indexed:
			r.Visible++
		case files.Gone:
			r.Gone++
		case files.Expired:
			r.Expired++
		}
		switch {
		case row.State != a.state:
			s.reportWrong("%s (%s) is %s, want %s", a.key, a.id, row.State, a.state)
		case a.stored != (body != nil), a.stored && !bytes.Equal(body, a.body):
			s.reportWrong("%s (%s) is %s, but the bucket has other bytes", a.key, a.id, a.state)
		default:
			r.Right++
		}
	}
	// If a service was killed, its client began the upload again at another service.
	maps.DeleteFunc(rows, func(_ string, f files.File) bool { return f.State == files.Expired })
	for id, f := range rows {
		s.reportWrong("%s is %s, but no client uploaded it", id, f.State)
	}
	// A service that was killed during its store check left objects. Other services remove them only
	// after an hour.
	maps.DeleteFunc(objects, func(key string, _ []byte) bool { return strings.HasPrefix(key, filesPrefix+files.ProbeFolder) })
	for key := range objects {
		s.reportWrong("the bucket has %s, but no client uploaded it", key)
	}
}

func (s *filesScenario) checkListing(ctx context.Context) error {
	want := map[string][]byte{}
	for _, a := range s.uploads {
		if a.state == files.Indexed {
			want[a.id] = a.body
		}
	}
	listed, err := s.client.List(ctx, filesEntity)
	if err != nil {
		return err
	}
	for _, f := range listed {
		body, status, err := s.client.Send(ctx, http.MethodGet, f.DownloadURL, nil, http.NoBody, 0)
		if err != nil {
			return err
		}
		if status != http.StatusOK || !bytes.Equal(body, want[f.ID]) {
			s.reportWrong("%s should not be listed, or not with these bytes", f.ID)
		}
		delete(want, f.ID)
	}
	for _, id := range slices.Sorted(maps.Keys(want)) {
		s.reportWrong("%s is not listed", id)
	}
	return nil
}
