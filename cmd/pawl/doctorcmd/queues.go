package doctorcmd

import (
	"context"
	"fmt"
	"log/slog"
	"slices"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/pawlhq/pawl/cmd/pawl/app"
	"github.com/pawlhq/pawl/cmd/pawl/config"
	"github.com/pawlhq/pawl/cmd/pawl/parts"
)

type queue struct {
	Queue      string `json:"queue"`
	MaxMessage int64  `json:"max_message_bytes,omitempty"`
	Accepts    level  `json:"accepts"` // the longest notification: yes, no or unknown
	Detail     string `json:"detail,omitempty"`
}

func queues(ctx context.Context, _ *app.App, log *slog.Logger, sources []config.Source) (all []queue) {
	for _, s := range sources {
		q, ok := s.Config.(parts.Queue)
		if !ok {
			continue
		}
		report := queue{Queue: q.Describe(), Accepts: levelFull}
		size, needed, err := q.MaxMessage(ctx, &parts.Assembly{Logger: log})
		report.MaxMessage = size
		switch {
		case err != nil:
			report.Accepts, report.Detail = levelUnknown, err.Error()
		case size < needed:
			report.Accepts = levelNone
			report.Detail = fmt.Sprintf("the queue rejects messages above %d bytes, and a notification may have %d bytes: raise MaximumMessageSize of the queue", size, needed)
		}
		all = append(all, report)
	}
	return all
}

// Rejected notifications are lost.
func rejecting(all []queue) bool {
	return slices.ContainsFunc(all, func(q queue) bool { return q.Accepts == levelNone })
}

func queuesTable(all []queue) string {
	t := app.PlainWriter("QUEUE", "ACCEPTS 64 KiB", "DETAIL")
	for _, q := range all {
		t.AppendRow(table.Row{app.Printable(q.Queue), q.Accepts, app.Printable(q.Detail)})
	}
	return t.Render()
}
