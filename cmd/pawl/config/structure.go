package config

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// list decodes a sequence.
func (d *decoder) list(n ast.Node, v reflect.Value, path string) {
	seq, ok := n.(*ast.SequenceNode)
	if !ok {
		d.fail(placeOf(n), path, "want a list, found %s", shape(n))
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(seq.Values), len(seq.Values)))
	for i, item := range seq.Values {
		at := fmt.Sprintf("%s[%d]", path, i)
		d.where[at] = placeOf(item)
		d.value(item, v.Index(i), at)
	}
}

// fields decodes a map into a struct.
func (d *decoder) fields(n ast.Node, v reflect.Value, path string) {
	pairs, ok := entries(n)
	if !ok {
		d.fail(placeOf(n), path, "want a map, found %s", shape(n))
		return
	}
	for _, pair := range pairs {
		if len(d.errs) < maxErrors {
			d.field(pair, v, path)
		}
	}
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if at := join(path, name(f)); required(f) && empty(v.Field(i)) && !d.failed(at) {
			p := near(d.where, at)
			d.note(&Error{Line: p.line, Column: p.column, Path: path, What: fmt.Sprintf("%q is missing", name(f)), lacks: at})
		}
	}
}

func empty(v reflect.Value) bool {
	return v.IsZero() || v.Kind() == reflect.Slice && v.Len() == 0
}

// entries returns the entries of a map. A null value is an empty map.
func entries(n ast.Node) ([]*ast.MappingValueNode, bool) {
	switch t := n.(type) {
	case *ast.MappingNode:
		return t.Values, true
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{t}, true
	case *ast.NullNode:
		return nil, true
	}
	return nil, false
}

// field decodes one entry of a map.
func (d *decoder) field(pair *ast.MappingValueNode, v reflect.Value, path string) {
	key, ok := pair.Key.(ast.Node).(*ast.StringNode)
	if !ok {
		d.fail(placeOf(pair.Key), path, "the name of a field must be plain text")
		return
	}
	at := join(path, key.Value)
	var known []string
	for i := range v.NumField() {
		f := v.Type().Field(i)
		for _, k := range d.table.kinds(f) {
			if k.Name == key.Value {
				d.where[at] = placeOf(pair.Key)
				d.part(pair.Value, v.Field(i).Addr().Interface().(*Part), k, at)
				return
			}
			known = append(known, k.Name)
		}
		if f.Tag.Get("part") != "" {
			continue
		}
		if name(f) == key.Value {
			d.where[at] = placeOf(pair.Key)
			d.value(pair.Value, v.Field(i), at)
			return
		}
		if f.Tag.Get("was") == key.Value {
			d.fail(placeOf(pair.Key), path, "field %s was renamed to %s", key.Value, name(f))
			return
		}
		known = append(known, name(f))
	}
	d.fail(placeOf(pair.Key), path, "unknown field %q: %s", clip(showBraces.Replace(key.Value)), suggest(key.Value, known))
}

// failed reports whether the field or its content already has an error. Further errors
// about it would not help.
func (d *decoder) failed(path string) bool {
	for _, e := range d.errs {
		if within(e.Path, path) {
			return true
		}
	}
	return false
}

// within reports whether a path is the path of a field or of its content.
func within(path, field string) bool {
	rest, ok := strings.CutPrefix(path, field)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// near returns the position of a field, or of the nearest enclosing field in the file.
func near(where map[string]place, path string) place {
	for path != "" {
		if p, ok := where[path]; ok {
			return p
		}
		path = path[:max(strings.LastIndexAny(path, ".["), 0)]
	}
	return place{}
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func name(f reflect.StructField) string { return f.Tag.Get("yaml") }

func required(f reflect.StructField) bool {
	return strings.HasPrefix(f.Tag.Get("jsonschema"), "required")
}
