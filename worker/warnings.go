package worker

import (
	"log/slog"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/internal/logthrottle"
)

type warnings struct {
	unclear, load *logthrottle.Warning
	sweep         map[string]*logthrottle.Warning // by pipeline
	// notices can concern all objects of a pipeline at once.
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
