package pipelinecmd

import (
	"fmt"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/pawlhq/pawl/cmd/pawl/app"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
)

func (acc *objectReport) text(now time.Time) string {
	var s strings.Builder
	fmt.Fprintln(&s, acc.object)
	for i := range acc.Rows {
		acc.Rows[i].text(&s, now)
	}
	for _, o := range acc.OtherPipelines {
		fmt.Fprintf(&s, "\n%s: %s\n", o.Pipeline, o.Reason)
	}
	return s.String()
}

func (st *rowReport) text(s *strings.Builder, now time.Time) {
	r := st.row
	fmt.Fprintf(s, "\n%s: %s\n", r.Pipeline, r.State(now))
	line := func(name, format string, args ...any) {
		fmt.Fprintf(s, "  %-8s %s\n", name, fmt.Sprintf(format, args...))
	}
	if r.VersionID != "" {
		line("version", "%s", event.Quote(r.VersionID))
	}
	line("reason", "%s", st.Reason)
	line("next", "%s", st.Next)
	if st.Order != "" {
		line("order", "%s", st.Order)
	}
	line("want", "%s", describe(&r.Want))
	line("have", "%s", describe(&r.Have))
	line("lease", "%s", describeLease(r, now))
	if r.LastError != "" {
		line("error", "%s", app.Printable(r.LastError))
	}
	if !r.VerifyAt.IsZero() {
		line("verify", "%s", app.FormatTime(r.VerifyAt))
	}
	if !r.EventTime.IsZero() {
		line("event", "newest at %s", app.FormatTime(r.EventTime))
	}
	line("row", "created %s, updated %s", app.FormatTime(r.CreatedAt), app.FormatTime(r.UpdatedAt))
	for i, e := range r.History {
		name := ""
		if i == 0 {
			name = "history"
		}
		line(name, "%s", strings.TrimSpace(fmt.Sprintf("%s  %-13s %s", app.FormatTime(e.At), e.What, app.Printable(e.Note))))
	}
}

func describe(v *ledger.Version) string {
	if v.Kind == 0 {
		return "none"
	}
	parts := []string{v.Kind.String()}
	if !v.Sequencer.IsZero() {
		parts = append(parts, "sequencer "+v.Sequencer.Raw())
	}
	if v.Generation > 0 {
		parts = append(parts, fmt.Sprintf("generation %d", v.Generation))
	}
	id := &v.Identity
	if id.VersionID != "" {
		parts = append(parts, "version "+event.Quote(id.VersionID))
	}
	if id.ETag != "" {
		parts = append(parts, "ETag "+event.Quote(id.ETag), humanize.IBytes(uint64(max(id.Size, 0))))
	}
	if !id.ModTime.IsZero() {
		parts = append(parts, "modified "+app.FormatTime(id.ModTime))
	}
	return strings.Join(parts, ", ")
}

func describeLease(r *ledger.Row, now time.Time) string {
	switch {
	case r.Live(now):
		return fmt.Sprintf("%s until %s, fence %d", r.Lease.Owner, app.FormatTime(r.Lease.Until), r.Lease.Fence)
	case r.Held():
		return fmt.Sprintf("%s, expired %s, fence %d", r.Lease.Owner, app.FormatTime(r.Lease.Until), r.Lease.Fence)
	case r.Lease.Fence > 0:
		return fmt.Sprintf("none; last fence %d", r.Lease.Fence)
	}
	return "none"
}
