package demo

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/pawlhq/pawl/proof/rig"
)

func (s *filesScenario) run(ctx context.Context) error {
	begun := time.Now()
	ctx, cancel := context.WithTimeoutCause(ctx, 2*stepTimeout, errTimeout)
	defer cancel()
	if err := s.upload(ctx); err != nil {
		return err
	}
	if err := s.drain(ctx); err != nil {
		return err
	}
	if err := s.heal(ctx); err != nil {
		return err
	}
	if err := s.advanceDay(ctx); err != nil {
		return err
	}
	if err := s.checkIndex(ctx); err != nil {
		return err
	}
	r := s.report
	r.Seconds, r.Services.Started = time.Since(begun).Seconds(), s.fleet.size()
	r.Notifications = s.relay.Messages()
	r.OK = len(r.Files.Wrong) == 0 && r.Files.Right == r.Files.Of
	return nil
}

func (s *filesScenario) upload(ctx context.Context) error {
	s.screen.begin("uploading", len(s.uploads))
	defer s.screen.end()
	var done atomic.Int32
	half := make(chan struct{})
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return s.killService(ctx, half) })
	group.Go(func() error {
		players, ctx := errgroup.WithContext(ctx)
		players.SetLimit(4)
		for i, a := range s.uploads {
			players.Go(func() error {
				if i == len(s.uploads)/2 {
					close(half)
				}
				err := s.runClient(ctx, a)
				s.screen.progress(int(done.Add(1)))
				return err
			})
		}
		return players.Wait()
	})
	if err := group.Wait(); err != nil {
		return err
	}
	s.screen.end()
	u := &s.report.Uploads
	s.screen.done("%d uploads began, %s with wrong bytes, length or type refused, %d interrupted", u.Begun, plural(u.Refused, "PUT"), u.BrokenOff)
	s.screen.done("%s deleted, and %d undeleted", plural(u.Deleted, "file"), u.Undeleted)
	return nil
}

func (s *filesScenario) killService(ctx context.Context, half <-chan struct{}) error {
	select {
	case <-half:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	s.killed.Kill()
	s.report.Services.Killed = 1
	s.screen.done("%s is killed in mid-work", s.killed)
	return s.startReplacement(ctx)
}

// drain waits until the services have acknowledged all notifications that were not dropped.
func (s *filesScenario) drain(ctx context.Context) error {
	err := rig.Until(ctx, 50*time.Millisecond, func() (bool, error) {
		open, _ := s.relay.Open()
		return open == 0, nil
	})
	if err != nil {
		_, failure := s.relay.Open()
		return fmt.Errorf("%w: notifications are not acknowledged: %w", err, failure)
	}
	return nil
}

// heal runs an audit, which must find the files whose notifications were lost.
func (s *filesScenario) heal(ctx context.Context) error {
	found, err := s.audit(ctx)
	if err != nil {
		return err
	}
	s.report.Healed.Audit = found.Moved["indexed"]
	if want := fileKinds[unnotified]; found.Moved["indexed"] != want || found.found() != want {
		s.reportWrong("an audit found %+[2]v, want the %[1]d files whose notifications were lost", want, *found)
	}
	s.screen.done("an audit finds %s whose notification was lost", plural(found.Moved["indexed"], "file"))
	return nil
}

func (s *filesScenario) reportWrong(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	s.updateReport(func(r *FilesReport) { r.Files.Wrong = append(r.Files.Wrong, text) })
	s.screen.failed("%s", text)
}

func (s *filesScenario) updateReport(f func(*FilesReport)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s.report)
}
