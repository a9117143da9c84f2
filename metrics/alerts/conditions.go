package alerts

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/pawlhq/pawl/audit"
	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/metrics"
)

const maxDead = 1000 // rows that are counted, per pipeline

// CheckPipelines sends the messages about pipelines and sources that are due. rows has the unsettled rows
// of each pipeline. Only one process of a ledger may call it at a time.
func (a *Alerts) CheckPipelines(ctx context.Context, rows map[string]ledger.Unsettled) {
	own := func(about *alert) bool {
		_, pipeline := rows[about.Subject]
		_, source := a.SilentAfter[about.Subject]
		return about.Kind == "pipeline" && pipeline || about.Kind == "source" && source
	}
	a.check(ctx, own, func(ctx context.Context, _ *state) ([]alert, error) {
		reports, err := audit.StoredReports(ctx, a.Ledger)
		if err != nil {
			return nil, err
		}
		var all []alert
		for pipeline, u := range rows {
			about := func(condition, summary, action string) {
				all = append(all, alert{Condition: condition, Kind: "pipeline", Subject: pipeline, Summary: summary, action: action})
			}
			old := !u.Oldest.IsZero() && time.Since(u.Oldest) > a.OldestAfter
			if old || u.Truncated {
				about("oldest", "An object has waited for its effect since "+u.Oldest.UTC().Format(time.RFC3339)+".",
					"pawl ls --pipeline "+pipeline+" --state pending,processing,stuck,failed, then pawl explain for an object")
				all[len(all)-1].onlyIfBegun = !old // the oldest row may be among those that were not read
			}
			dead, err := a.Ledger.Dead(ctx, pipeline, maxDead)
			if err != nil {
				return nil, err
			}
			if n := len(dead); n > 0 {
				count := fmt.Sprint(n)
				if n == maxDead {
					count += " or more"
				}
				about("dead", "Objects that failed for the last time: "+count+".",
					"pawl ls --pipeline "+pipeline+" --state dead, remove the cause, then pawl redrive --all --pipeline "+pipeline)
			}
			if r := lastAudit(reports, pipeline, (*audit.Counts).Lost); r != nil {
				about("losses", fmt.Sprintf("The audit found lost notifications: creations %d, overwrites %d, removals %d.",
					r.LostCreations, r.LostOverwrites, r.LostRemovals),
					"pawl audit --list, repair the notifications of the bucket, then pawl audit")
			}
			if r := lastAudit(reports, pipeline, func(c *audit.Counts) int64 { return c.Withheld }); r != nil {
				about("brake", fmt.Sprintf("The audit withheld %d removals, because too many objects are missing.", r.Withheld),
					"check objects.endpoint and match.bucket; if the removals are right, pawl audit --allow-removals --pipeline "+pipeline)
			}
		}
		return a.appendSilent(ctx, all)
	})
}

// lastAudit returns the counts of the pipeline's last audit if it found something. An audit of a part of
// the keys counts only if it found something. The reports are newest first.
func lastAudit(reports []audit.Report, pipeline string, found func(*audit.Counts) int64) *audit.Counts {
	for i := range reports {
		for j := range reports[i].Pipelines {
			p := &reports[i].Pipelines[j]
			switch {
			case p.Name != pipeline:
			case found(&p.Counts) > 0:
				return &p.Counts
			case reports[i].Prefix == "":
				return nil
			}
		}
	}
	return nil
}

// appendSilent measures silence from the last delivery to any process. After a start of this process,
// silence begins again, because messages may have waited.
func (a *Alerts) appendSilent(ctx context.Context, all []alert) ([]alert, error) {
	for source, after := range a.SilentAfter {
		last, _, err := a.readMark(ctx, deliveryRegister(source))
		if err != nil {
			return nil, err
		}
		if !last.At.IsZero() && time.Since(last.At) > after {
			all = append(all, alert{
				Condition: "silence", Kind: "source", Subject: source, onlyIfBegun: time.Since(a.created) <= after,
				Summary: "The source has delivered nothing since " + last.At.UTC().Format(time.RFC3339) + ".",
				action:  "check the notifications of the bucket and the queue, then pawl audit",
			})
		}
	}
	return all, nil
}

// gapAlert is the time for which a gap is an alert.
const gapAlert = time.Hour

// RunArchives sends the messages about gaps in archives until ctx ends, in one process of a ledger at a
// time.
func (a *Alerts) RunArchives(ctx context.Context, archives []string) error {
	return metrics.InOneProcess(ctx, a.Ledger, "alerts/lease/"+a.Name, a.Logger, func(ctx context.Context) error {
		own := func(about *alert) bool { return slices.Contains(archives, about.Subject) }
		a.check(ctx, own, func(ctx context.Context, s *state) ([]alert, error) { return a.gaps(ctx, s, archives) })
		return nil
	}, func() {})
}

// gaps removes an old mark only after its alert has begun, so that no gap is missed while no process runs.
func (a *Alerts) gaps(ctx context.Context, s *state, archives []string) (all []alert, err error) {
	for _, name := range archives {
		last, register, err := a.readMark(ctx, gapRegister(name))
		if err != nil {
			return nil, err
		}
		if last.At.IsZero() {
			continue
		}
		gap := alert{
			Condition: "gap", Kind: "archive", Subject: name, Summary: last.Text,
			action: "pawl archive verify " + name,
		}
		begun := slices.ContainsFunc(s.All, func(a alert) bool { return a.key() == gap.key() && a.Ended.IsZero() })
		if begun && time.Since(last.At) >= gapAlert {
			if err := a.Ledger.RemoveRegister(ctx, register.Name, register.Version); err != nil {
				return nil, err
			}
			continue
		}
		all = append(all, gap)
	}
	return all, nil
}
