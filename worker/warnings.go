package worker

import (
	"log/slog"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/internal/logthrottle"
)

// warnings are those that one trouble repeats as long as it lasts.
type warnings struct {
	unclear, load *logthrottle.Warning
	sweep         map[string]*logthrottle.Warning // by pipeline
	// facts are those that may be true of every object of a pipeline at a time.
	notices map[engine.Kind]map[string]*logthrottle.Warning
}

func newWarnings(l *slog.Logger, pipelines []string) *warnings {
	each := func() map[string]*logthrottle.Warning {
		m := map[string]*logthrottle.Warning{}
		for _, name := range pipelines {
			m[name] = logthrottle.New(l)
		}
		return m
	}
	return &warnings{
		unclear: logthrottle.New(l), load: logthrottle.New(l), sweep: each(),
		notices: map[engine.Kind]map[string]*logthrottle.Warning{
			engine.AttemptUncounted: each(), engine.Unreadable: each(), engine.ShapeChanged: each(), engine.Disordered: each(),
		},
	}
}
