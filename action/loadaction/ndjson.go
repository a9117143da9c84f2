package loadaction

import (
	"bytes"
	"io"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pawlhq/pawl/event"
)

// ndjson reads the first line. A column that no line needs to name is one without a
// default: there a line that does not name it has a null. One with a default is
// loaded if the first line names it.
func (l *loader) ndjson(in io.Reader) (*content, error) {
	r := newRecords(in, l.MaxLine, false)
	first, err := r.next()
	if err != nil && err != io.EOF {
		return nil, err
	}
	first = bytes.Clone(bytes.TrimPrefix(first, []byte("\uFEFF")))
	var named []string
	if len(text(first)) > 0 {
		if named, _, err = object(text(first), 1); err != nil {
			return nil, err
		}
		if err := l.known(named, "line 1"); err != nil {
			return nil, err
		}
	}
	c := &content{options: "FORMAT text", line: "line"}
	for _, col := range l.columns {
		if !col.filled || slices.Contains(named, col.name) {
			c.columns = append(c.columns, col.name)
		}
	}
	c.write = func(to io.Writer, source string) error {
		row := value(nil, source)
		prefix := len(row)
		put := func(record []byte, line int) (err error) {
			if row, err = l.row(row[:prefix], c.columns, text(record), line); err == nil {
				_, err = to.Write(row)
			}
			return err
		}
		if len(text(first)) > 0 {
			if err := put(first, 1); err != nil {
				return err
			}
		}
		return r.each(func(record []byte) error { return put(record, r.line) })
	}
	return c, nil
}

// row writes a line behind the source, as a row.
func (l *loader) row(row []byte, columns []string, record []byte, line int) ([]byte, error) {
	names, values, err := object(record, line)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if !slices.Contains(columns, name) {
			if err := l.known([]string{name}, "line "+itoa(line)); err != nil {
				return nil, err
			}
			return nil, wrong("line %d: the column %s has a default, so that it must be in the first line, or in none", line, event.Quote(clip(name)))
		}
	}
	for _, name := range columns {
		row = append(row, '\t')
		i := slices.Index(names, name)
		if i < 0 || values[i].Kind() == 'n' {
			row = append(row, `\N`...)
		} else {
			row = value(row, plain(values[i]))
		}
	}
	return append(row, '\n'), nil
}

// object returns the members of the one object of a line.
func object(record []byte, line int) (names []string, values []jsontext.Value, err error) {
	d := jsontext.NewDecoder(bytes.NewReader(record))
	if d.PeekKind() != '{' {
		return nil, nil, wrong("line %d is no JSON object: %q", line, clip(string(record)))
	}
	if _, err := d.ReadToken(); err != nil {
		return nil, nil, wrong("line %d: %w", line, err)
	}
	for d.PeekKind() == '"' {
		name, err := d.ReadToken()
		if err != nil {
			return nil, nil, wrong("line %d: %w", line, err)
		}
		names = append(names, name.String())
		v, err := d.ReadValue()
		if err != nil {
			return nil, nil, wrong("line %d: %w", line, err)
		}
		values = append(values, v.Clone())
	}
	if _, err := d.ReadToken(); err != nil {
		return nil, nil, wrong("line %d: %w", line, err)
	}
	if _, err := d.ReadToken(); err != io.EOF {
		return nil, nil, wrong("line %d has something behind its object", line)
	}
	return names, values, nil
}

// plain is a value as PostgreSQL reads it: a string without its quotes, and
// anything else as it is.
func plain(v jsontext.Value) string {
	if v.Kind() == '"' {
		if s, err := jsontext.AppendUnquote(nil, v); err == nil {
			return string(s)
		}
	}
	return string(v)
}
