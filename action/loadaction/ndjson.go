package loadaction

import (
	"bytes"
	"io"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pawlhq/pawl/event"
)

// A column missing in a later line is null. A column with a default is loaded only if the first
// line names it.
func (l *loader) ndjson(in io.Reader) (*content, error) {
	r := newRecords(in, l.MaxLine, false)
	first, err := r.next()
	if err != nil && err != io.EOF {
		return nil, err
	}
	first = bytes.Clone(first)
	c := &content{where: "line 1", byName: true, options: "FORMAT text", line: "line"}
	if len(trimLineEnding(first)) > 0 {
		if c.names, _, err = parseObject(trimLineEnding(first), 1); err != nil {
			return nil, err
		}
	}
	c.write = func(w io.Writer, to *target) error {
		row := appendCopyValue(nil, to.source)
		prefix := len(row)
		put := func(record []byte, line int) (err error) {
			if row, err = to.row(row[:prefix], trimLineEnding(record), line); err == nil {
				_, err = w.Write(row)
			}
			return err
		}
		if len(trimLineEnding(first)) > 0 {
			if err := put(first, 1); err != nil {
				return err
			}
		}
		return r.each(func(record []byte) error { return put(record, r.line) })
	}
	return c, nil
}

func (to *target) row(row, record []byte, line int) ([]byte, error) {
	names, values, err := parseObject(record, line)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if !slices.ContainsFunc(to.columns, named(name)) {
			if err := to.table.check([]string{name}, "line "+strconv.Itoa(line)); err != nil {
				return nil, err
			}
			return nil, invalidFile("line %d: the column %s has a default: name it in the first line, or in no line", line, event.Quote(truncate(name)))
		}
	}
	for _, col := range to.columns {
		row = append(row, '\t')
		i := slices.Index(names, col.name)
		if i < 0 || values[i].Kind() == 'n' {
			row = append(row, `\N`...)
		} else {
			row = appendCopyValue(row, col.text(values[i]))
		}
	}
	return append(row, '\n'), nil
}

func parseObject(record []byte, line int) (names []string, values []jsontext.Value, err error) {
	d := jsontext.NewDecoder(bytes.NewReader(record))
	if d.PeekKind() != '{' {
		return nil, nil, invalidFile("line %d is not a JSON object: %q", line, truncate(string(record)))
	}
	if _, err := d.ReadToken(); err != nil {
		return nil, nil, invalidFile("line %d: %w", line, err)
	}
	for d.PeekKind() == '"' {
		name, err := d.ReadToken()
		if err != nil {
			return nil, nil, invalidFile("line %d: %w", line, err)
		}
		names = append(names, name.String())
		v, err := d.ReadValue()
		if err != nil {
			return nil, nil, invalidFile("line %d: %w", line, err)
		}
		values = append(values, v.Clone())
	}
	if _, err := d.ReadToken(); err != nil {
		return nil, nil, invalidFile("line %d: %w", line, err)
	}
	if _, err := d.ReadToken(); err != io.EOF {
		return nil, nil, invalidFile("line %d has text after its object", line)
	}
	return names, values, nil
}

// A string loses its quotes, unless the column has a JSON type.
func (c *column) text(v jsontext.Value) string {
	if v.Kind() == '"' && c.kind != "json" && c.kind != "jsonb" {
		if s, err := jsontext.AppendUnquote(nil, v); err == nil {
			return string(s)
		}
	}
	return string(v)
}
