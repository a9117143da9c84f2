package world

import (
	"flag"
	"strings"
	"testing"
)

var (
	histories = flag.Uint64("histories", 20_000, "how many `worlds` TestWorlds plays")
	seed      = flag.Uint64("seed", 1, "the `seed` of the first")
)

func TestWorlds(t *testing.T) {
	if f := Run(*seed, *histories); f != nil {
		t.Errorf("seed %d: %s\n\n%s\n\nrepeat: go test ./files/internal/world -run TestWorlds -histories 1 -seed %d",
			f.Seed, strings.Join(f.Violations, "\n"), strings.Join(f.Story, "\n"), f.Seed)
	}
}

func BenchmarkWorlds(b *testing.B) {
	if f := Run(1, uint64(b.N)); f != nil {
		b.Error(f.Seed, f.Violations)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "histories/s")
}
