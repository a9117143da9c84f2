// Command play plays simulated worlds and prints what became of them as JSON. It
// is built once for each mutant.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"

	"github.com/pawlhq/pawl/internal/sim"
)

func main() {
	first := flag.Uint64("first", 1, "the first seed")
	histories := flag.Uint64("histories", 1000, "how many worlds")
	flag.Parse()
	r := sim.Run(context.Background(), sim.Options{First: *first, Histories: *histories, Threads: 1, KeepGoing: true})
	if err := json.NewEncoder(os.Stdout).Encode(r); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
