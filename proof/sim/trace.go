package sim

import (
	"fmt"
	"strings"

	"github.com/pawlhq/pawl/engine"
)

// n is nil if the line concerns no process.
func (w *World) logf(n *node, format string, args ...any) {
	name := "-"
	if n != nil {
		name = n.name
	}
	w.Tracef("%-3s "+format, append([]any{name}, args...)...)
}

var noticeTexts = [...]string{
	engine.Died: "it died", engine.TookOver: "it took over an expired lease", engine.LostLease: "it lost its lease",
	engine.AttemptFailed: "it failed", engine.AttemptUncounted: "it failed because of an outage", engine.ShapeChanged: "the sequencer changed its shape", engine.Committed: "it completed",
	engine.NothingToDo: "there was nothing to do",
}

func describeOutcome(fin *engine.Finished) string {
	said := []string{[...]string{engine.Completed: "completed", engine.Failed: "failed", engine.Released: "released"}[fin.Result]}
	switch end := &fin.Ending; {
	case end.Read.ByEvent:
		said = append(said, "by the event: "+end.Read.Kind.String())
	case end.Read.Kind != 0:
		said = append(said, strings.TrimSpace("read: "+end.Read.Kind.String()+" "+end.Read.Identity.ETag))
	}
	switch end := &fin.Ending; {
	case end.Unsure:
		said = append(said, "a write may still land")
	case fin.Result == engine.Completed && !fin.Acted:
		said = append(said, "there was nothing to do")
	case end.Sent:
		said = append(said, "a write was sent")
	}
	if fin.Failure.Message != "" {
		said = append(said, fin.Failure.Message)
	}
	return strings.Join(said, "; ")
}

func versionName(version int) string {
	if version < 0 {
		return "none"
	}
	return fmt.Sprintf("version %d", version)
}
