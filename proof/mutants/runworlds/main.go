// Command runworlds runs simulated worlds and prints a report as JSON. It is built once for each
// mutant.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"

	"github.com/pawlhq/pawl/proof/sim"
)

func main() {
	first := flag.Uint64("first", 1, "the first seed")
	histories := flag.Uint64("histories", 1000, "number of worlds")
	block := flag.Uint64("block", 250, "worlds per block; the run ends after a block with a violation")
	flag.Parse()
	r, played := &sim.Report{}, uint64(0)
	for r.Failure == nil && played < *histories {
		r = sim.Run(context.Background(), sim.Options{
			First: *first + played, Histories: min(*block, *histories-played), Threads: 1, KeepGoing: true,
		})
		played += r.Histories
	}
	r.Histories = played
	if err := json.NewEncoder(os.Stdout).Encode(r); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
