package encode

import (
	"bytes"
	"slices"

	"github.com/pawlhq/pawl/archive"
)

// Codec implements [archive.Codec] for all [Formats].
type Codec struct{}

var _ archive.Codec = Codec{}

// Knows implements [archive.Codec].
func (Codec) Knows(format string) bool { return slices.Contains(Formats, Format(format)) }

// Encode implements [archive.Codec].
func (Codec) Encode(format, shard string, records []archive.Record) ([]byte, error) {
	var b bytes.Buffer
	err := Encode(&b, Format(format), shard, records)
	return b.Bytes(), err
}

// Decode implements [archive.Codec].
func (Codec) Decode(format, shard string, body []byte) (records []archive.Record, err error) {
	for e, err := range Decode(bytes.NewReader(body), Format(format), shard) {
		if err != nil {
			return nil, err
		}
		records = append(records, e)
	}
	return records, nil
}
