package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/ledger"
)

// parseStates reads a list of states.
func parseStates(names []string) ([]ledger.State, error) {
	states := make([]ledger.State, len(names))
	for i, name := range names {
		states[i] = ledger.State(name)
		if !slices.Contains(ledger.States, states[i]) {
			return nil, usage("--state %q: want %s", name, strings.Join(stateNames(), ", "))
		}
	}
	return states, nil
}

func stateNames() []string {
	names := make([]string, len(ledger.States))
	for i, s := range ledger.States {
		names[i] = string(s)
	}
	return names
}

// completeStates offers the states to shells.
func completeStates(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return stateNames(), cobra.ShellCompDirectiveNoFileComp
}
