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

// heard says what of a pipeline's objects its bucket is configured to tell.
type heard struct {
	Pipeline string   `json:"pipeline"`
	Created  telling  `json:"created"`
	Removed  telling  `json:"removed"`
	To       []string `json:"to,omitempty"` // who is told
	Detail   string   `json:"detail,omitempty"`
}

// telling is yes, partly or no, or unknown.
type telling string

const (
	toldAll     telling = "yes"
	toldPart    telling = "partly"
	toldNone    telling = "no"
	toldUnknown telling = "unknown"
)

// The kinds of change that a pipeline has to hear of.
var (
	createdEvents = []string{"s3:ObjectCreated:Put", "s3:ObjectCreated:Post", "s3:ObjectCreated:Copy", "s3:ObjectCreated:CompleteMultipartUpload"}
	removedEvents = []string{"s3:ObjectRemoved:Delete", "s3:ObjectRemoved:DeleteMarkerCreated"}
)

// hear asks the bucket what it tells of the objects that its pipelines match.
func hear(ctx context.Context, store *s3bucket.Store, name string, pipelines []config.Pipeline) (all []heard) {
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
			all = append(all, heard{Pipeline: p.Name, Created: toldUnknown, Removed: toldUnknown, Detail: cannotTell(err)})
			continue
		}
		all = append(all, judgeNotifications(notifications, p))
	}
	return all
}

func cannotTell(err error) string {
	switch {
	case errors.Is(err, bucket.ErrInvalid):
		return "the store cannot tell: its own configuration says"
	case errors.Is(err, bucket.ErrDenied):
		return "denied: it takes the permission s3:GetBucketNotification"
	}
	return err.Error()
}

// deaf reports that a pipeline is told nothing of created or of removed objects.
func deaf(all []heard) bool {
	return slices.ContainsFunc(all, func(h heard) bool { return h.Created == toldNone || h.Removed == toldNone })
}

// judgeNotifications says what a bucket that is configured so tells a pipeline.
func judgeNotifications(notifications []s3bucket.Notification, p config.Pipeline) heard {
	h := heard{Pipeline: p.Name}
	suffixes := p.Match.Suffix
	if len(suffixes) == 0 {
		suffixes = []string{""}
	}
	var lacking []string
	judge := func(events []string) telling {
		var found []telling
		for _, e := range events {
			for _, suffix := range suffixes {
				best := toldNone
				for _, n := range notifications {
					if !tellsOf(n, e) {
						continue
					}
					if t := tellsKeys(n, p.Match.Prefix, suffix); t != toldNone {
						best = max(best, t) // "yes" after "partly" after "no", as text too
						h.To = append(h.To, n.To)
					}
				}
				found = append(found, best)
				if best != toldAll {
					lacking = append(lacking, e)
				}
			}
		}
		return together(found)
	}
	h.Created, h.Removed = judge(createdEvents), judge(removedEvents)
	slices.Sort(h.To)
	h.To = slices.Compact(h.To)
	if len(lacking) > 0 {
		h.Detail = "not told for every key: " + strings.Join(slices.Compact(lacking), ", ")
	}
	return h
}

// together is yes where all are, and no where all are no.
func together(all []telling) telling {
	if slices.Min(all) == slices.Max(all) {
		return all[0]
	}
	return toldPart
}

// tellsOf reports that a notification is about a kind of change.
func tellsOf(n s3bucket.Notification, event string) bool {
	return slices.ContainsFunc(n.Events, func(e string) bool {
		family, all := strings.CutSuffix(e, "*")
		return e == event || all && strings.HasPrefix(event, family)
	})
}

// tellsKeys says whether a notification is about the keys with a prefix and a
// suffix.
func tellsKeys(n s3bucket.Notification, prefix, suffix string) telling {
	switch {
	case strings.HasPrefix(prefix, n.Prefix) && strings.HasSuffix(suffix, n.Suffix):
		return toldAll
	case (strings.HasPrefix(prefix, n.Prefix) || strings.HasPrefix(n.Prefix, prefix)) &&
		(strings.HasSuffix(suffix, n.Suffix) || strings.HasSuffix(n.Suffix, suffix)):
		return toldPart
	}
	return toldNone
}

func notificationsTable(all []heard) string {
	t := app.PlainWriter("PIPELINE", "CREATED", "REMOVED", "TOLD TO", "DETAIL")
	for _, h := range all {
		t.AppendRow(table.Row{h.Pipeline, h.Created, h.Removed, app.Printable(strings.Join(h.To, ", ")), app.Printable(h.Detail)})
	}
	return t.Render()
}
