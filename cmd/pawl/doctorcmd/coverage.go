package doctorcmd

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/bucket/s3bucket"
	"github.com/pawlhq/pawl/cmd/pawl/app"
	"github.com/pawlhq/pawl/cmd/pawl/config"
)

// coverage describes which changes of a pipeline's objects the bucket's notifications report.
type coverage struct {
	Pipeline string   `json:"pipeline"`
	Created  level    `json:"created"`
	Removed  level    `json:"removed"`
	To       []string `json:"to,omitempty"`
	Detail   string   `json:"detail,omitempty"`
}

type level string

const (
	levelFull    level = "yes"
	levelPartial level = "partly"
	levelNone    level = "no"
	levelUnknown level = "unknown"
)

// Pipelines need these S3 events.
var (
	createdEvents = []string{"s3:ObjectCreated:Put", "s3:ObjectCreated:Post", "s3:ObjectCreated:Copy", "s3:ObjectCreated:CompleteMultipartUpload"}
	removedEvents = []string{"s3:ObjectRemoved:Delete", "s3:ObjectRemoved:DeleteMarkerCreated"}
)

func checkCoverage(ctx context.Context, store *s3bucket.Store, name string, pipelines []config.Pipeline) (all []coverage) {
	var mine []config.Pipeline
	for _, p := range pipelines {
		if p.Match.Bucket == name {
			mine = append(mine, p)
		}
	}
	if len(mine) == 0 {
		return nil
	}
	notifications, err := store.Notifications(ctx, name)
	for _, p := range mine {
		if err != nil {
			all = append(all, coverage{Pipeline: p.Name, Created: levelUnknown, Removed: levelUnknown, Detail: coverageError(err)})
			continue
		}
		all = append(all, judgeCoverage(notifications, p))
	}
	return all
}

func coverageError(err error) string {
	switch {
	case errors.Is(err, bucket.ErrInvalid):
		return "the store does not support this request: check its notification configuration"
	case errors.Is(err, bucket.ErrDenied):
		return "access denied: the permission s3:GetBucketNotification is required"
	}
	return err.Error()
}

func uncovered(all []coverage) bool {
	return slices.ContainsFunc(all, func(h coverage) bool { return h.Created == levelNone || h.Removed == levelNone })
}

func judgeCoverage(notifications []s3bucket.Notification, p config.Pipeline) coverage {
	h := coverage{Pipeline: p.Name}
	suffixes := p.Match.Suffix
	if len(suffixes) == 0 {
		suffixes = []string{""}
	}
	var lacking []string
	judge := func(events []string) level {
		var found []level
		for _, e := range events {
			for _, suffix := range suffixes {
				best := levelNone
				for _, n := range notifications {
					if !coversEvent(n, e) {
						continue
					}
					if t := coversKeys(n, p.Match.Prefix, suffix); t != levelNone {
						best = max(best, t) // the texts have the order "no" < "partly" < "yes"
						h.To = append(h.To, n.To)
					}
				}
				found = append(found, best)
				if best != levelFull {
					lacking = append(lacking, e)
				}
			}
		}
		return combine(found)
	}
	h.Created, h.Removed = judge(createdEvents), judge(removedEvents)
	slices.Sort(h.To)
	h.To = slices.Compact(h.To)
	if len(lacking) > 0 {
		h.Detail = "missing for some or all keys: " + strings.Join(slices.Compact(lacking), ", ")
	}
	return h
}

func combine(all []level) level {
	if slices.Min(all) == slices.Max(all) {
		return all[0]
	}
	return levelPartial
}

func coversEvent(n s3bucket.Notification, event string) bool {
	return slices.ContainsFunc(n.Events, func(e string) bool {
		family, all := strings.CutSuffix(e, "*")
		return e == event || all && strings.HasPrefix(event, family)
	})
}

// coversKeys returns how much of the keys with prefix and suffix the notification covers.
func coversKeys(n s3bucket.Notification, prefix, suffix string) level {
	switch {
	case strings.HasPrefix(prefix, n.Prefix) && strings.HasSuffix(suffix, n.Suffix):
		return levelFull
	case (strings.HasPrefix(prefix, n.Prefix) || strings.HasPrefix(n.Prefix, prefix)) &&
		(strings.HasSuffix(suffix, n.Suffix) || strings.HasSuffix(n.Suffix, suffix)):
		return levelPartial
	}
	return levelNone
}

func coverageTable(all []coverage) string {
	t := app.PlainWriter("PIPELINE", "CREATED", "REMOVED", "DESTINATION", "DETAIL")
	for _, h := range all {
		t.AppendRow(table.Row{h.Pipeline, h.Created, h.Removed, app.Printable(strings.Join(h.To, ", ")), app.Printable(h.Detail)})
	}
	return t.Render()
}
