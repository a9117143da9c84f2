// Package format has the rules for the versions of stored records.
//
// A record has a version MAJOR.MINOR, in the member "v" or in "format" after a name. Software that
// reads one minor version reads all others of the major version, and keeps their unknown members
// when it writes the record. It rejects other major versions, and does not change the record.
package format

import (
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Register is the version of the registers with a [Header].
const Register = "1.0"

// Header is embedded in the JSON form of a register. Copy it from the value that a write replaces.
type Header struct {
	V       string         `json:"v"`
	Unknown jsontext.Value `json:",embed"`
}

func (h *Header) header() *Header { return h }

// Record is the JSON form of a register.
type Record interface{ header() *Header }

// Check returns an error unless software that writes version own may read version v.
func Check(v, own string) error {
	major, _, _ := strings.Cut(own, ".")
	if m, _, _ := strings.Cut(v, "."); m != major {
		return fmt.Errorf("unsupported version %.40q, want %s.x", v, major)
	}
	return nil
}

// Decode decodes a register. An empty body has the version of a new one.
func Decode(body []byte, into Record) error {
	if len(body) == 0 {
		return nil
	}
	if err := json.Unmarshal(body, into); err != nil {
		return err
	}
	return Check(into.header().V, Register)
}

// Encode encodes a register. It replaces invalid UTF-8.
func Encode(r Record) ([]byte, error) {
	r.header().V = Register
	return json.Marshal(r, jsontext.AllowInvalidUTF8(true))
}
