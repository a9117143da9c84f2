package worker

import (
	"log/slog"

	"github.com/pawlhq/pawl/internal/logthrottle"
)

// warnings are those that one trouble repeats as long as it lasts.
type warnings struct {
	unclear            *logthrottle.Warning
	sweep, outage, odd map[string]*logthrottle.Warning // by pipeline
}

func newWarnings(l *slog.Logger, pipelines []string) *warnings {
	w := &warnings{
		unclear: logthrottle.New(l), sweep: map[string]*logthrottle.Warning{}, outage: map[string]*logthrottle.Warning{}, odd: map[string]*logthrottle.Warning{},
	}
	for _, name := range pipelines {
		w.sweep[name], w.outage[name], w.odd[name] = logthrottle.New(l), logthrottle.New(l), logthrottle.New(l)
	}
	return w
}
