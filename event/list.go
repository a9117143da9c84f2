package event

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

func (p *parser) rejectUndetected() error {
	if p.batch.Dialect == Detect {
		return p.unknownDialect("the list is empty, so its dialect is unknown")
	}
	return nil
}

// eachRecord never holds the whole array in memory.
func eachRecord[T any](p *parser, dec *jsontext.Decoder, add func(*T) error) error {
	if dec.PeekKind() != '[' {
		if err := dec.SkipValue(); err != nil {
			return err // not even JSON
		}
		return p.malformed("the records are not a JSON array")
	}
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	var r, none T
	for i := 0; dec.PeekKind() != ']'; i++ {
		if i == MaxRecords {
			return p.tooMany()
		}
		p.record = i
		r = none
		if err := json.UnmarshalDecode(dec, &r); err != nil {
			return err
		}
		if err := add(&r); err != nil {
			return err
		}
	}
	p.record = -1
	_, err := dec.ReadToken()
	return err
}
