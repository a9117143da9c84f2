package encode

import (
	"fmt"
	"io"
	"iter"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/pawlhq/pawl/archive"
)

// maxValue is the maximum size of one record in bytes. It bounds the memory for a damaged object.
const maxValue = 64 << 20

// line is a user record in NDJSON. Valid UTF-8 is stored as text, and other data in base64.
type line struct {
	Shard        string         `json:"shard_id"`
	Number       archive.Number `json:"sequence_number"`
	Sub          *int           `json:"sub_sequence_number,omitzero"`
	PartitionKey string         `json:"partition_key"`
	HashKey      string         `json:"explicit_hash_key,omitzero"`
	Arrival      string         `json:"arrival"` // in arrivalLayout
	Data         *string        `json:"data,omitzero"`
	Base64       *[]byte        `json:"data_base64,omitzero"`
	Malformed    string         `json:"malformed,omitzero"`
}

const arrivalLayout = "2006-01-02T15:04:05.000Z"

func lineOf(r row) *line {
	l := line{
		Shard: r.shard, Number: r.number, Sub: r.subNumber(), PartitionKey: r.partitionKey, HashKey: r.hashKey,
		Arrival: r.arrival.UTC().Format(arrivalLayout), Malformed: r.malformed,
	}
	if utf8.Valid(r.data) {
		text := string(r.data)
		l.Data = &text
	} else {
		l.Base64 = &r.data
	}
	return &l
}

func (l *line) row() (row, error) {
	arrival, err := time.Parse(arrivalLayout, l.Arrival)
	r := row{
		shard: l.Shard, number: l.Number, sub: subOf(l.Sub), partitionKey: l.PartitionKey, hashKey: l.HashKey,
		arrival: arrival, malformed: l.Malformed,
	}
	switch {
	case err != nil:
		return r, err
	case (l.Data == nil) == (l.Base64 == nil):
		return r, fmt.Errorf("record %.100s needs data or data_base64", l.Number)
	case l.Data != nil:
		r.data = []byte(*l.Data)
	default:
		r.data = *l.Base64
	}
	return r, nil
}

func writeNDJSON(w io.Writer, rows iter.Seq2[row, error]) error {
	enc := jsontext.NewEncoder(w)
	for r, err := range rows {
		if err == nil {
			err = json.MarshalEncode(enc, lineOf(r))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func readNDJSON(in io.Reader) iter.Seq2[row, error] {
	return func(yield func(row, error) bool) {
		limited := &recordLimiter{r: in}
		dec := jsontext.NewDecoder(limited)
		for {
			limited.read = 0
			r, err := nextLine(dec)
			if err == io.EOF || !yield(r, err) || err != nil {
				return
			}
		}
	}
}

func nextLine(dec *jsontext.Decoder) (row, error) {
	var l line
	if err := json.UnmarshalDecode(dec, &l, json.RejectUnknownMembers(true)); err != nil {
		return row{}, err
	}
	return l.row()
}

type recordLimiter struct {
	r    io.Reader
	read int
}

func (m *recordLimiter) Read(b []byte) (int, error) {
	if m.read > maxValue {
		return 0, fmt.Errorf("a record is larger than %d bytes", maxValue)
	}
	n, err := m.r.Read(b)
	m.read += n
	return n, err
}

func (r *row) subNumber() *int {
	if r.sub < 0 {
		return nil
	}
	return &r.sub
}

func subOf(place *int) int {
	if place == nil {
		return -1
	}
	return *place
}
