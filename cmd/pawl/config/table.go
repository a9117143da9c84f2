package config

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// Table lists the kinds of parts that a file may name.
type Table struct {
	Ledgers []LedgerKind
	Sources []Kind
	Actions []Kind
}

// Kind is a kind of source or action. The file has a map under its name.
type Kind struct {
	Name string
	// Config is an empty struct of the type that the map is read into. Its
	// fields have yaml tags, and a jsonschema tag if they are required.
	Config any
}

// LedgerKind is a kind of ledger. The file has one word, which begins with its
// name.
type LedgerKind struct {
	Name string
	Form string // how it is written: sqlite:FILE; the name alone if nothing follows it
	// Parse reads what follows the name and a colon. A relative path in it counts
	// from dir, the folder of the file. Its error must not repeat the text, which
	// may be an environment variable's.
	Parse func(rest, dir string) (any, error)
}

// Part is a source, an action or a ledger, of a kind that the table lists.
type Part struct {
	Kind   string `yaml:"-"`
	Config any    `yaml:"-"` // of the kind's type

	others []string // the kinds that the file names before it, in the same place
}

// kinds returns what may stand in a field that holds a part, or nil.
func (t *Table) kinds(f reflect.StructField) []Kind {
	switch f.Tag.Get("part") {
	case "source":
		return t.Sources
	case "action":
		return t.Actions
	}
	return nil
}

// part decodes the map of a kind.
func (d *decoder) part(n ast.Node, to *Part, k Kind, path string) {
	if to.Kind != "" {
		to.others = append(to.others, to.Kind)
	}
	v := reflect.New(reflect.TypeOf(k.Config)).Elem()
	d.value(n, v, path)
	to.Kind, to.Config = k.Name, v.Interface()
}

// defaultLedger is the only default that is not set where it is used.
const defaultLedger = "sqlite:pawl.db"

// LedgerAlone is a configuration that only names a ledger. A relative path in it
// counts from the working directory.
func (t *Table) LedgerAlone(text string) (*Config, error) {
	c := &Config{}
	c.Ledger.kinds = t.Ledgers
	err := c.Ledger.parse(text)
	if errors.Is(err, errUnwanted) {
		err = fmt.Errorf("want %s", c.Ledger.wants())
	}
	return c, err
}

// complete sets the default ledger, and finds what is wrong between fields.
// Whether pipelines and values make sense is package pawl's to say.
func (c *Config) complete(d *decoder) {
	if c.Ledger.Kind == "" {
		if err := c.Ledger.parse(defaultLedger); err != nil {
			d.fail(place{}, "ledger", "%v", err)
		}
	}
	for i := range c.Sources {
		d.one(&c.Sources[i].Part, fmt.Sprintf("sources[%d]", i), "names no source: known here: "+names(d.table.Sources),
			"names more than one source (%s): make an entry of each")
	}
	for i := range c.Pipelines {
		d.one(&c.Pipelines[i].Action, fmt.Sprintf("pipelines[%d]", i), "says nothing to do: give it one of "+names(d.table.Actions),
			"does more than one thing (%s): make a pipeline of each")
	}
}

// one refuses a place that names no kind, or several.
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
