package config

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// decoder decodes YAML into the types of this package. After an error it records the error with
// its position and continues.
type decoder struct {
	table   *Table
	lookup  func(string) (string, bool)
	anchors map[string]ast.Node
	where   map[string]place
	ignored string // top-level field in which errors are ignored
	errs    []*Error
}

// maxErrors bounds the number of reported errors.
const maxErrors = 20

// failure returns all errors, in the order of the file, or nil.
func (d *decoder) failure(name string) error {
	if len(d.errs) == 0 {
		return nil
	}
	slices.SortStableFunc(d.errs, (*Error).compare)
	return &Errors{File: name, List: d.errs}
}

func (d *decoder) fail(p place, path, format string, args ...any) {
	d.note(&Error{Line: p.line, Column: p.column, Path: path, What: fmt.Sprintf(format, args...)})
}

func (d *decoder) note(e *Error) {
	if d.ignored != "" && within(e.Path, d.ignored) {
		return
	}
	if len(d.errs) < maxErrors {
		d.errs = append(d.errs, e)
	}
}

func placeOf(n ast.Node) place {
	if m, ok := n.(*ast.MappingNode); ok && len(m.Values) > 0 && !m.IsFlowStyle {
		n = m.Values[0].Key // the token of a block map is the colon after its first key
	}
	if t := n.GetToken(); t != nil && t.Position != nil {
		return place{t.Position.Line, t.Position.Column}
	}
	return place{}
}

// value decodes n into v.
func (d *decoder) value(n ast.Node, v reflect.Value, path string) {
	n, ok := d.resolve(n, path)
	if !ok {
		return
	}
	_, null := n.(*ast.NullNode)
	if v.CanAddr() {
		if s, ok := v.Addr().Interface().(scalar); ok {
			if _, secret := s.(*Secret); !null || secret {
				d.scalar(n, path, s.wants(), s.parse)
			}
			return
		}
	}
	if kind := v.Kind(); null && kind != reflect.Pointer && kind != reflect.Struct {
		return // treat a null value like a missing field
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		d.value(n, v.Elem(), path)
	case reflect.Struct:
		d.fields(n, v, path)
	case reflect.Slice:
		d.list(n, v, path)
	case reflect.String:
		d.scalar(n, path, "text", func(s string) error { v.SetString(s); return nil })
	case reflect.Bool:
		d.scalar(n, path, "true or false", func(s string) error { return setBool(v, s) })
	case reflect.Int:
		d.scalar(n, path, "a whole number above 0", func(s string) error { return setInt(v, s) })
	}
}

func setBool(v reflect.Value, s string) error {
	if s != "true" && s != "false" {
		return errUnwanted
	}
	v.SetBool(s == "true")
	return nil
}

// setInt rejects zero, because zero stands for a missing field and selects the default.
func setInt(v reflect.Value, s string) error {
	i, err := strconv.ParseInt(s, 10, 32)
	if err != nil || i < 1 {
		return errUnwanted
	}
	v.SetInt(i)
	return nil
}

// resolve returns the node that an anchor or alias stands for.
func (d *decoder) resolve(n ast.Node, path string) (ast.Node, bool) {
	switch t := n.(type) {
	case *ast.AnchorNode:
		at, ok := d.resolve(t.Value, path)
		if ok {
			d.anchors[t.Name.String()] = at
		}
		return at, ok
	case *ast.AliasNode:
		name := t.Value.String()
		at, ok := d.anchors[name]
		if !ok {
			d.fail(placeOf(n), path, "the alias has no anchor &%s before it", name)
			return nil, false
		}
		return d.resolve(at, path)
	case *ast.TagNode:
		d.fail(placeOf(n), path, "tags are not supported: remove %q", t.Start.Value)
		return nil, false
	}
	return n, true
}

// scalar decodes a single value.
func (d *decoder) scalar(n ast.Node, path, wants string, set func(string) error) {
	text, ok := scalarText(n)
	if !ok {
		d.fail(placeOf(n), path, "want %s, found %s", wants, shape(n))
		return
	}
	value, names, err := expand(showBraces.Replace(text), d.lookup)
	if err == nil {
		err = set(value)
	}
	switch {
	case err == nil:
		return
	case err == errUnwanted:
		err = fmt.Errorf("want %s", wants)
		if len(names) == 0 {
			err = fmt.Errorf("want %s, found %q", wants, clip(value))
		}
	}
	if len(names) > 0 {
		err = fmt.Errorf("%w (from ${%s})", err, strings.Join(names, "}, ${"))
	}
	_, unset := errors.AsType[*unsetError](err)
	p := placeOf(n)
	d.note(&Error{Line: p.line, Column: p.column, Path: path, What: err.Error(), unset: unset})
}

// scalarText returns the text of a scalar without quotes. It accepts a number as text, because
// a name may consist of digits.
func scalarText(n ast.Node) (string, bool) {
	switch t := n.(type) {
	case *ast.StringNode:
		return t.Value, true
	case *ast.LiteralNode:
		return t.Value.Value, true
	case *ast.NullNode:
		return "", true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return n.GetToken().Value, true
	}
	return "", false
}

func shape(n ast.Node) string {
	switch n.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		return "a map"
	case *ast.SequenceNode:
		return "a list"
	}
	return "a single value"
}

// clip shortens a text from the file that an error quotes.
func clip(s string) string {
	const limit = 60
	if r := []rune(s); len(r) > limit {
		return string(r[:limit]) + "…"
	}
	return s
}
