package config

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// Table lists the kinds of ledgers, sources and actions.
type Table struct {
	Ledgers []LedgerKind
	Sources []Kind
	Actions []Kind
}

// Kind is a kind of source or action. The file configures it with a map under the kind's name.
type Kind struct {
	Name string
	// Config is a zero value of the struct into which the map is decoded. Its fields have
	// yaml tags, and a jsonschema tag if they are required.
	Config any
}

// LedgerKind is a kind of ledger. The file configures it with a single value that begins with
// the kind's name.
type LedgerKind struct {
	Name string
	Form string // syntax of the value: sqlite:FILE, or only the name
	// Parse parses the text after the name and the colon. A relative path is relative to
	// dir, the folder of the file. The error must not contain the text, which may come from
	// an environment variable.
	Parse func(rest, dir string) (any, error)
}

// Part is a ledger, source or action of a kind in the table.
type Part struct {
	Kind   string `yaml:"-"`
	Config any    `yaml:"-"` // configuration, with the type of the kind's Config

	others []string // other kinds that the same map names
}

// kinds returns the kinds that a field may contain, or nil.
func (t *Table) kinds(f reflect.StructField) []Kind {
	switch f.Tag.Get("part") {
	case "source":
		return t.Sources
	case "action":
		return t.Actions
	}
	return nil
}

// part decodes the map of one kind.
func (d *decoder) part(n ast.Node, to *Part, k Kind, path string) {
	if to.Kind != "" {
		to.others = append(to.others, to.Kind)
	}
	v := reflect.New(reflect.TypeOf(k.Config)).Elem()
	d.value(n, v, path)
	to.Kind, to.Config = k.Name, v.Interface()
}

// defaultLedger is the only default that this package sets.
const defaultLedger = "sqlite:pawl.db"

// LedgerAlone returns a configuration with only a ledger. A relative path is relative to
// the working directory.
func (t *Table) LedgerAlone(text string) (*Config, error) {
	c := &Config{}
	c.Ledger.kinds = t.Ledgers
	err := c.Ledger.parse(text)
	if errors.Is(err, errUnwanted) {
		err = fmt.Errorf("want %s", c.Ledger.wants())
	}
	return c, err
}

// complete sets the default ledger, and checks that each source and each pipeline names
// exactly one kind. Package pawl validates pipelines and values.
func (c *Config) complete(d *decoder) {
	if c.Ledger.Kind == "" {
		if err := c.Ledger.parse(defaultLedger); err != nil {
			d.fail(place{}, "ledger", "%v", err)
		}
	}
	for i := range c.Sources {
		d.one(&c.Sources[i].Part, fmt.Sprintf("sources[%d]", i), "no source: want one of "+names(d.table.Sources),
			"more than one source (%s): use a list entry for each")
	}
	for i := range c.Pipelines {
		d.one(&c.Pipelines[i].Action, fmt.Sprintf("pipelines[%d]", i), "no action: want one of "+names(d.table.Actions),
			"more than one action (%s): use a pipeline for each")
	}
}

// one rejects a map that names no kind or several kinds.
func (d *decoder) one(p *Part, path, none, many string) {
	switch {
	case p.Kind == "" && !d.failed(path):
		d.fail(near(d.where, path), path, "%s", none)
	case len(p.others) > 0:
		d.fail(near(d.where, path), path, many, strings.Join(append(p.others, p.Kind), ", "))
	}
}

func names(all []Kind) string {
	out := make([]string, len(all))
	for i, k := range all {
		out[i] = k.Name
	}
	return strings.Join(out, ", ")
}
