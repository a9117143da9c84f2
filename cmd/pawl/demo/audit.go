package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/pawlhq/pawl/lock"
)

type auditResult struct {
	Total struct {
		LostCreations  int `json:"lost_creations"`
		LostOverwrites int `json:"lost_overwrites"`
		LostRemovals   int `json:"lost_removals"`
	} `json:"total"`
	Examples []struct {
		What   string `json:"what"`
		Object string `json:"object"`
	} `json:"examples"`
}

func (a *auditResult) lost() int {
	return a.Total.LostCreations + a.Total.LostOverwrites + a.Total.LostRemovals
}

// foundLosses is the exit code of an audit that found losses.
const foundLosses = 3

// The relay has delivered all notifications, so every difference is a loss.
func (s *pipelineScenario) audit(ctx context.Context, flags ...string) (*auditResult, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, stepTimeout, errTimeout)
	defer cancel()
	for {
		found := &auditResult{}
		err := s.fleet.runJSON(ctx, found, append([]string{"audit", "--settle-window", "1ns"}, flags...)...)
		// The leases are so short that a busy machine may renew one too late. The next audit continues.
		if err == nil || !strings.Contains(err.Error(), lock.ErrLost.Error()) {
			return found, err
		}
	}
}

func (f *fleet) runJSON(ctx context.Context, into any, command ...string) error {
	cmd := exec.CommandContext(ctx, f.binary, append(command, "-c", filepath.Join(f.dir, configFile), "--json", "--log-level", "error")...)
	cmd.Env = append(environment("", ""), apiVar+"=127.0.0.1:0")
	var complaint strings.Builder
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	name := "pawl " + strings.Join(command, " ")
	var exit *exec.ExitError
	if err != nil && !(errors.As(err, &exit) && exit.ExitCode() == foundLosses) {
		return fmt.Errorf("%s: %w: %s", name, err, strings.TrimSpace(complaint.String()))
	}
	if err := json.Unmarshal(out, into); err != nil {
		return fmt.Errorf("%s printed %q: %w", name, out, err)
	}
	return nil
}

// heal audits the bucket, and waits until the workers have processed the objects whose notifications
// were lost.
func (s *pipelineScenario) heal(ctx context.Context) error {
	found, err := s.audit(ctx)
	if err != nil || found.lost() == 0 {
		return err
	}
	s.report.Effects.Healed = found.lost()
	return s.awaitSettled(ctx, "an audit of the bucket repaired "+plural(found.lost(), "object")+" whose last notification was dropped")
}
