package encode

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/pawlhq/pawl/archive"
)

// maxValue bounds the memory of what is read: no record of a stream comes near.
const maxValue = 64 << 20

// line is a record in NDJSON. Data that is UTF-8 stands there as text, because it
// is read, searched and compressed better so; all other data in base64.
type line struct {
	Shard        string         `json:"shard_id"`
	Number       archive.Number `json:"sequence_number"`
	Sub          *int           `json:"sub_sequence_number,omitzero"`
	PartitionKey string         `json:"partition_key"`
	HashKey      string         `json:"explicit_hash_key,omitzero"`
	Arrival      string         `json:"arrival"` // as in arrivalLayout
	Data         *string        `json:"data,omitzero"`
	Base64       *[]byte        `json:"data_base64,omitzero"`
	Malformed    string         `json:"malformed,omitzero"`
}

const arrivalLayout = "2006-01-02T15:04:05.000Z"

func lineOf(r row) any {
	l := line{
		Shard: r.shard, Number: r.number, Sub: r.place(), PartitionKey: r.partitionKey, HashKey: r.hashKey,
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

// item is a record in a JSON array: names and order are those of the .NET client
// library's Record. Fields that the library lacks are left out where they are empty.
type item struct {
	Data         []byte         `json:"Data"`
	Number       archive.Number `json:"SequenceNumber"`
	Sub          *int           `json:"SubSequenceNumber"`
	PartitionKey string         `json:"PartitionKey"`
	Arrival      float64        `json:"ApproximateArrivalTimestamp"` // milliseconds since 1970
	HashKey      string         `json:"ExplicitHashKey,omitzero"`
	Malformed    string         `json:"Malformed,omitzero"`
}

func itemOf(r row) any {
	return &item{
		Data: r.data, Number: r.number, Sub: r.place(), PartitionKey: r.partitionKey,
		Arrival: float64(r.arrival.UnixMilli()), HashKey: r.hashKey, Malformed: r.malformed,
	}
}

func (i *item) row() (row, error) {
	if math.Abs(i.Arrival) > 1<<53 {
		return row{}, fmt.Errorf("record %.100s arrived at %v", i.Number, i.Arrival)
	}
	return row{
		number: i.Number, sub: subOf(i.Sub), partitionKey: i.PartitionKey, hashKey: i.HashKey,
		arrival: time.UnixMilli(int64(i.Arrival)).UTC(), data: i.Data, malformed: i.Malformed,
	}, nil
}

func writeJSON(w io.Writer, layout string, rows iter.Seq2[row, error]) error {
	enc, form, array := jsontext.NewEncoder(w), lineOf, layout == "json"
	if array {
		form = itemOf
		if err := enc.WriteToken(jsontext.BeginArray); err != nil {
			return err
		}
	}
	for r, err := range rows {
		if err == nil {
			err = json.MarshalEncode(enc, form(r))
		}
		if err != nil {
			return err
		}
	}
	if array {
		return enc.WriteToken(jsontext.EndArray)
	}
	return nil
}

// readJSON reads lines, or the items of an array.
func readJSON(in io.Reader, layout string) iter.Seq2[row, error] {
	return func(yield func(row, error) bool) {
		limited := &meter{r: in}
		dec := jsontext.NewDecoder(limited)
		next := nextLine
		if layout == "json" {
			if tok, err := dec.ReadToken(); err != nil || tok.Kind() != '[' {
				yield(row{}, cmp.Or(err, errors.New("it does not begin an array")))
				return
			}
			next = nextItem
		}
		for {
			limited.read = 0
			r, err := next(dec)
			if err == io.EOF || !yield(r, err) || err != nil {
				return
			}
		}
	}
}

// nextLine returns io.EOF at the end.
func nextLine(dec *jsontext.Decoder) (row, error) {
	var l line
	if err := json.UnmarshalDecode(dec, &l, json.RejectUnknownMembers(true)); err != nil {
		return row{}, err
	}
	return l.row()
}

// nextItem returns io.EOF at the end.
func nextItem(dec *jsontext.Decoder) (row, error) {
	if dec.PeekKind() != ']' {
		var i item
		if err := json.UnmarshalDecode(dec, &i); err != nil {
			return row{}, err
		}
		return i.row()
	}
	if _, err := dec.ReadToken(); err != nil {
		return row{}, err
	}
	_, err := dec.ReadToken() // compressors check their sums at the end
	return row{}, cmp.Or(err, errors.New("more follows the array"))
}

// meter refuses to read more for one record than there may be.
type meter struct {
	r    io.Reader
	read int
}

// Read implements [io.Reader].
func (m *meter) Read(b []byte) (int, error) {
	if m.read > maxValue {
		return 0, fmt.Errorf("a record is larger than %d bytes", maxValue)
	}
	n, err := m.r.Read(b)
	m.read += n
	return n, err
}

func (r *row) place() *int {
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
