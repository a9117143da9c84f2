package config

import (
	"fmt"
	"strings"
)

// defaults fills in what only the command line knows. Everything else has its
// default where it is used.
func (c *Config) defaults() {
	if c.Ledger == (Ledger{}) {
		c.Ledger = Ledger{Kind: "sqlite", Path: "pawl.db"}
	}
}

// check finds what is wrong between fields. Whether pipelines and values make
// sense is package pawl's to say.
func (c *Config) check(d *decoder) {
	for i := range c.Sources {
		path := fmt.Sprintf("sources[%d]", i)
		if c.Sources[i].Webhook == nil && !d.failed(path) {
			d.fail(near(d.where, path), path, "names no source: known here: webhook")
		}
	}
	for i := range c.Pipelines {
		path := fmt.Sprintf("pipelines[%d]", i)
		p := near(d.where, path)
		switch actions := c.Pipelines[i].Actions(); {
		case len(actions) == 0 && !d.failed(path):
			d.fail(p, path, "says nothing to do: give it one of image, copy, exec, http")
		case len(actions) > 1:
			d.fail(p, path, "does more than one thing (%s): make a pipeline of each", strings.Join(actions, ", "))
		}
	}
}

// Actions names what the pipeline does: one thing, in a file that was accepted.
func (p *Pipeline) Actions() (names []string) {
	if p.Image != nil {
		names = append(names, "image")
	}
	if p.Copy != nil {
		names = append(names, "copy")
	}
	if p.Exec != nil {
		names = append(names, "exec")
	}
	if p.HTTP != nil {
		names = append(names, "http")
	}
	return names
}
