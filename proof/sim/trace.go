package sim

import (
	"fmt"
	"strings"

	"github.com/pawlhq/pawl/engine"
)

// logf adds a line to the trace. n is nil where none of the processes does it.
func (w *World) logf(n *node, format string, args ...any) {
	name := "-"
	if n != nil {
		name = n.name
	}
	w.Tracef("%-3s "+format, append([]any{name}, args...)...)
}

var noticeTexts = [...]string{
	engine.Died: "it died", engine.TookOver: "it took over an expired lease", engine.LostLease: "it lost its lease",
	engine.AttemptFailed: "it failed", engine.AttemptUncounted: "it failed for no fault of its object", engine.ShapeChanged: "the sequencer changed its shape", engine.Committed: "it is done",
	engine.NothingToDo: "there was nothing to do",
}

// describeOutcome says how an attempt ended.
func describeOutcome(fin *engine.Finished) string {
	said := []string{[...]string{engine.Completed: "completed", engine.Failed: "failed", engine.Released: "gave it back"}[fin.Result]}
	switch end := &fin.Ending; {
	case end.Read.ByEvent:
		said = append(said, "by the event: "+end.Read.Kind.String())
	case end.Read.Kind != 0:
		said = append(said, strings.TrimSpace("read: "+end.Read.Kind.String()+" "+end.Read.Identity.ETag))
	}
	switch end := &fin.Ending; {
	case end.Unsure:
		said = append(said, "a write may be on its way")
	case fin.Result == engine.Completed && !fin.Acted:
		said = append(said, "there was nothing to do")
	case end.Sent:
		said = append(said, "something was sent")
	}
	if fin.Failure.Message != "" {
		said = append(said, fin.Failure.Message)
	}
	return strings.Join(said, "; ")
}

// versionName names a version of an object, or that there is none.
func versionName(version int) string {
	if version < 0 {
		return "none"
	}
	return fmt.Sprintf("version %d", version)
}
