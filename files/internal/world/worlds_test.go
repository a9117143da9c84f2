package world

import (
	"testing"

	"github.com/pawlhq/pawl/internal/simkit/simtest"
)

func TestWorlds(t *testing.T) { simtest.Worlds(t, "./files/internal/world", 20_000, Simulation) }

func TestReplay(t *testing.T) { simtest.Replay(t, Simulation) }

func BenchmarkWorlds(b *testing.B) {
	if f, _ := Simulation.Run(b.Context(), 1, uint64(b.N)); f != nil {
		b.Error(f.Seed, f.Violations)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "histories/s")
}
