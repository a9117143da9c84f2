package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// MaxFile is the largest file read, in bytes. A thousand pipelines fit.
const MaxFile = 256 << 10

// Config is a file that was read, and where its fields stand in it.
type Config struct {
	File
	name  string
	where map[string]place
}

// place is a position in a file, from 1.
type place struct{ line, column int }

// Load reads a file. lookup answers for environment variables, as os.LookupEnv
// does. Faults of the content are an [*Errors].
func (t *Table) Load(name string, lookup func(string) (string, bool)) (*Config, error) {
	return t.load(name, lookup, "", everything)
}

// LoadToLook is Load for those who only look into the ledger: a variable that is
// not set is no error outside of the ledger's field.
func (t *Table) LoadToLook(name string, lookup func(string) (string, bool)) (*Config, error) {
	return t.load(name, lookup, "", func(path string) bool { return path == "ledger" || path == "pipelines" })
}

// LoadObjects is Load for those who only use the object store: a variable that
// is not set is no error outside of the store's fields, and of what pipelines
// match. There need not be any pipelines.
func (t *Table) LoadObjects(name string, lookup func(string) (string, bool)) (*Config, error) {
	return t.load(name, lookup, "", func(path string) bool {
		return within(path, "objects") || strings.Contains(path, "].match.")
	})
}

// LoadArchives is Load for those who only work on archives: a variable that is not
// set is no error outside of these, the ledger's, the store's and the lease's
// fields. There need not be any pipelines.
func (t *Table) LoadArchives(name string, lookup func(string) (string, bool)) (*Config, error) {
	return t.load(name, lookup, "", func(path string) bool {
		return path == "ledger" || within(path, "objects") || within(path, "archives") || within(path, "lease")
	})
}

// LoadWithoutSources is Load for those who bring notifications of their own: the
// sources are left out, and nothing in them is an error.
func (t *Table) LoadWithoutSources(name string, lookup func(string) (string, bool)) (*Config, error) {
	c, err := t.load(name, lookup, "sources", everything)
	if err == nil {
		c.Sources = nil
	}
	return c, err
}

// Parse is Load of a file's content.
func (t *Table) Parse(name string, raw []byte, lookup func(string) (string, bool)) (*Config, error) {
	return t.decode(name, raw, lookup, "", everything)
}

// everything is needed by those who do the work.
func everything(string) bool { return true }

func (t *Table) load(name string, lookup func(string) (string, bool), ignored string, needs func(path string) bool) (*Config, error) {
	raw, err := read(name)
	if err != nil {
		return nil, err
	}
	return t.decode(name, raw, lookup, ignored, needs)
}

// decode returns what the file says if nothing is wrong with it. Nothing counts
// in the ignored field. In fields that are not needed a variable may be unset,
// and pipelines may be missing if they are not needed, or if there are archives or
// files.
func (t *Table) decode(name string, raw []byte, lookup func(string) (string, bool), ignored string, needs func(path string) bool) (*Config, error) {
	root, err := parse(name, raw)
	if err != nil {
		return nil, err
	}
	c := &Config{name: name, where: make(map[string]place)}
	c.Ledger.kinds, c.Ledger.dir = t.Ledgers, filepath.Dir(name)
	d := &decoder{table: t, lookup: lookup, anchors: make(map[string]ast.Node), where: c.where, ignored: ignored}
	d.value(root, reflect.ValueOf(&c.File).Elem(), "")
	c.complete(d)
	d.errs = slices.DeleteFunc(d.errs, func(e *Error) bool {
		return e.unset && !needs(e.Path) || e.lacks == "pipelines" && (!needs(e.lacks) || len(c.Archives) > 0 || c.Files != nil)
	})
	if err := d.failure(name); err != nil {
		return nil, err
	}
	return c, nil
}

func read(name string) ([]byte, error) {
	f, err := os.Open(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, whole(name, "no such file: name another with -c FILE")
	case err != nil:
		return nil, whole(name, "cannot be read: "+errors.Unwrap(err).Error())
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, MaxFile+1))
	if err != nil {
		return nil, whole(name, "cannot be read: "+err.Error())
	}
	return raw, nil
}

// parse reads the YAML and returns its root.
func parse(name string, raw []byte) (ast.Node, error) {
	switch {
	case len(raw) > MaxFile:
		return nil, whole(name, fmt.Sprintf("is larger than %d KiB", MaxFile>>10))
	case !utf8.Valid(raw):
		return nil, whole(name, "is not UTF-8 text")
	}
	if depth(raw) > maxDepth {
		return nil, whole(name, "nests deeper than any configuration needs")
	}
	text, err := protect(string(raw))
	if err != nil {
		return nil, whole(name, err.Error())
	}
	file, err := parser.ParseBytes([]byte(text), 0)
	if err != nil {
		return nil, syntaxError(name, err)
	}
	if len(file.Docs) > 1 {
		return nil, whole(name, "has more than one YAML document: remove the --- between them")
	}
	if len(file.Docs) == 0 || file.Docs[0].Body == nil {
		return nil, whole(name, "is empty: at least one pipeline is needed")
	}
	return file.Docs[0].Body, nil
}

// At returns an error about a field, with its place in the file. Where the file
// does not have the field, the place is that of what would hold it.
func (c *Config) At(path string, err error) error {
	e := &Error{Path: path, What: err.Error()}
	p := near(c.where, path)
	e.Line, e.Column = p.line, p.column
	return &Errors{File: c.name, List: []*Error{e}}
}

func whole(name, what string) error {
	return &Errors{File: name, List: []*Error{{What: what}}}
}

// syntaxError leaves out the lines that the library would show: they may hold a
// secret.
func syntaxError(name string, err error) error {
	e := &Error{What: "this is not YAML"}
	var y yaml.Error
	if errors.As(err, &y) {
		e.What = "this is not YAML: " + showBraces.Replace(y.GetMessage())
		if t := y.GetToken(); t != nil && t.Position != nil {
			e.Line, e.Column = t.Position.Line, t.Position.Column
		}
	}
	return &Errors{File: name, List: []*Error{e}}
}

// Name returns the file's name.
func (c *Config) Name() string { return c.name }
