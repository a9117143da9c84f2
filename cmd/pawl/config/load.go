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

// MaxFile is the maximum size of a file in bytes. A file of this size has room for a thousand
// pipelines.
const MaxFile = 256 << 10

// Config is a decoded file with the positions of its fields.
type Config struct {
	File
	name  string
	where map[string]place
}

// place is a position in a file. Lines and columns start at 1.
type place struct{ line, column int }

// Load reads a file. lookup returns environment variables, like os.LookupEnv. Errors in
// the content are an [*Errors].
func (t *Table) Load(name string, lookup func(string) (string, bool)) (*Config, error) {
	return t.load(name, lookup, "", everything)
}

// LoadLedger is Load for commands that only read the ledger. Variables may be unset outside
// the field ledger.
func (t *Table) LoadLedger(name string, lookup func(string) (string, bool)) (*Config, error) {
	return t.load(name, lookup, "", func(path string) bool { return path == "ledger" || path == "pipelines" })
}

// LoadObjects is Load for commands that only use the object store. Variables may be unset
// outside the fields objects and match. The file may have no pipelines.
func (t *Table) LoadObjects(name string, lookup func(string) (string, bool)) (*Config, error) {
	return t.load(name, lookup, "", func(path string) bool {
		return within(path, "objects") || strings.Contains(path, "].match.")
	})
}

// LoadArchives is Load for commands that only use archives. Variables may be unset outside
// the fields archives, ledger, objects, lease and alerts. The file may have no pipelines.
func (t *Table) LoadArchives(name string, lookup func(string) (string, bool)) (*Config, error) {
	return t.load(name, lookup, "", func(path string) bool {
		return path == "ledger" || within(path, "objects") || within(path, "archives") || within(path, "lease") || within(path, "alerts")
	})
}

// LoadWithoutSources is Load for commands that receive notifications in another way. It ignores
// the sources and their errors.
func (t *Table) LoadWithoutSources(name string, lookup func(string) (string, bool)) (*Config, error) {
	c, err := t.load(name, lookup, "sources", everything)
	if err == nil {
		c.Sources = nil
	}
	return c, err
}

// Parse is Load for the content of a file.
func (t *Table) Parse(name string, raw []byte, lookup func(string) (string, bool)) (*Config, error) {
	return t.decode(name, raw, lookup, "", everything)
}

// everything reports that every field is needed.
func everything(string) bool { return true }

func (t *Table) load(name string, lookup func(string) (string, bool), ignored string, needs func(path string) bool) (*Config, error) {
	raw, err := read(name)
	if err != nil {
		return nil, err
	}
	return t.decode(name, raw, lookup, ignored, needs)
}

// decode decodes a file. It discards errors in the ignored field, and errors about unset
// variables in fields that are not needed. Pipelines may be missing if they are not needed,
// or if there are archives or files.
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
		return nil, whole(name, "no such file: select another file with -c FILE")
	case err != nil:
		return nil, whole(name, "read failed: "+errors.Unwrap(err).Error())
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, MaxFile+1))
	if err != nil {
		return nil, whole(name, "read failed: "+err.Error())
	}
	return raw, nil
}

// parse reads the YAML and returns its root.
func parse(name string, raw []byte) (ast.Node, error) {
	switch {
	case len(raw) > MaxFile:
		return nil, whole(name, fmt.Sprintf("the file is larger than %d KiB", MaxFile>>10))
	case !utf8.Valid(raw):
		return nil, whole(name, "the file is not UTF-8 text")
	}
	if depth(raw) > maxDepth {
		return nil, whole(name, "the nesting is too deep")
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
		return nil, whole(name, "more than one YAML document: remove the --- between them")
	}
	if len(file.Docs) == 0 || file.Docs[0].Body == nil {
		return nil, whole(name, "the file is empty: at least one pipeline is required")
	}
	return file.Docs[0].Body, nil
}

// At returns an error about a field, with its position in the file. If the file does not have
// the field, the error has the position of the enclosing field.
func (c *Config) At(path string, err error) error {
	e := &Error{Path: path, What: err.Error()}
	p := near(c.where, path)
	e.Line, e.Column = p.line, p.column
	return &Errors{File: c.name, List: []*Error{e}}
}

func whole(name, what string) error {
	return &Errors{File: name, List: []*Error{{What: what}}}
}

// syntaxError omits the lines that the library would show, because they may contain a
// secret.
func syntaxError(name string, err error) error {
	e := &Error{What: "invalid YAML"}
	var y yaml.Error
	if errors.As(err, &y) {
		e.What = "invalid YAML: " + showBraces.Replace(y.GetMessage())
		if t := y.GetToken(); t != nil && t.Position != nil {
			e.Line, e.Column = t.Position.Line, t.Position.Column
		}
	}
	return &Errors{File: name, List: []*Error{e}}
}

// Name returns the file's name.
func (c *Config) Name() string { return c.name }
