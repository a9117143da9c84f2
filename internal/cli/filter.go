package cli

import (
	"context"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/internal/config"
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

// checkPipeline refuses a pipeline's name that neither the configuration nor the
// ledger knows. An empty name stands for all.
func (v *view) checkPipeline(ctx context.Context, name string) error {
	if name == "" || configured(v.config, name) {
		return nil
	}
	known, err := ledger.Pipelines(ctx, v.Store)
	if err != nil || slices.Contains(known, name) {
		return err
	}
	known = append(known, pipelineNames(v.config)...)
	slices.Sort(known)
	return usage("--pipeline %q: neither the configuration nor the ledger has it: known are %s",
		name, strings.Join(slices.Compact(known), ", "))
}

func pipelineNames(c *config.Config) []string {
	names := make([]string, len(c.Pipelines))
	for i := range c.Pipelines {
		names[i] = c.Pipelines[i].Name
	}
	return names
}

// completePipelines offers the configuration's pipelines to shells.
func (a *app) completePipelines(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	c, err := a.parts.LoadToLook(a.configFile, os.LookupEnv)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return pipelineNames(c), cobra.ShellCompDirectiveNoFileComp
}

// completeStates offers the states to shells.
func completeStates(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return stateNames(), cobra.ShellCompDirectiveNoFileComp
}
