package lock

import (
	"testing"

	"github.com/pawlhq/pawl/internal/simkit"
	"github.com/pawlhq/pawl/internal/simkit/simtest"
)

var worlds = simkit.Simulation[*threads]{Threads: newThreads, RunWorld: runWorld}

// In the worlds, requests and responses are lost, late, doubled or wrongly refused. Processes pause
// for longer than their leases, or die. Clocks differ in time and rate.
func TestWorlds(t *testing.T) { simtest.Worlds(t, "./lock", worldCount, worlds) }

func TestReplay(t *testing.T) { simtest.Replay(t, worlds) }
