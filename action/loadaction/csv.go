package loadaction

import (
	"bytes"
	"encoding/csv"
	"io"
	"strings"
)

// csv reads the first line. The others go to the server as they are, which knows
// what a quoted value is, and what an empty one; only the source is put before each.
func (l *loader) csv(in io.Reader) (*content, error) {
	r := newRecords(in, l.MaxLine, true)
	head, err := r.next()
	if err == io.EOF {
		return nil, wrong("it is empty: the first line of a CSV file has the names of the columns")
	}
	if err != nil {
		return nil, err
	}
	head = bytes.TrimPrefix(bytes.Clone(head), []byte("\uFEFF"))
	names, err := csv.NewReader(bytes.NewReader(head)).Read()
	if err != nil {
		return nil, wrong("line 1 has no names of columns: %w", err)
	}
	if err := l.known(names, "line 1"); err != nil {
		return nil, err
	}
	write := func(to io.Writer, source string) error {
		quoted := `"` + strings.ReplaceAll(source, `"`, `""`) + `",`
		if _, err := to.Write(head); err != nil {
			return err
		}
		var row []byte
		return r.each(func(record []byte) error {
			row = append(append(row[:0], quoted...), record...)
			_, err := to.Write(row)
			return err
		})
	}
	return &content{columns: names, options: "FORMAT csv, HEADER true", line: "line", write: write}, nil
}
