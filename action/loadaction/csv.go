package loadaction

import (
	"bytes"
	"encoding/csv"
	"io"
	"strings"
)

// csv parses only the first line, because PostgreSQL has its own rules for empty and quoted
// values.
func (l *loader) csv(in io.Reader) (*content, error) {
	r := newRecords(in, l.MaxLine, true)
	head, err := r.next()
	if err == io.EOF {
		return nil, invalidFile("the file is empty: the first line of a CSV file names the columns")
	}
	if err != nil {
		return nil, err
	}
	head = bytes.Clone(head)
	names, err := csv.NewReader(bytes.NewReader(head)).Read()
	if err != nil {
		return nil, invalidFile("line 1 does not name columns: %w", err)
	}
	write := func(w io.Writer, to *target) error {
		quoted := `"` + strings.ReplaceAll(to.source, `"`, `""`) + `",`
		if _, err := w.Write(head); err != nil {
			return err
		}
		var row []byte
		return r.each(func(record []byte) error {
			row = append(append(row[:0], quoted...), record...)
			_, err := w.Write(row)
			return err
		})
	}
	return &content{names: names, where: "line 1", options: "FORMAT csv, HEADER true", line: "line", write: write}, nil
}
