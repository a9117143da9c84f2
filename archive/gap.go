package archive

import "github.com/go-json-experiment/json"

// gapKind says what is known of the records in the range of a gap.
type gapKind string

const (
	// gapExpired: a record of the range was announced or read, and had expired before it
	// was stored. So the range has lost at least one record.
	gapExpired gapKind = "expired"
	// gapPossible: nothing shows that the range had a record, and nothing shows that it
	// had none. Gaps of earlier versions of Pawl, whose notes name no kind, count as such.
	gapPossible gapKind = "possibly expired"
	// gapMalformed: all records of the range are kept below _pawl/malformed/.
	gapMalformed gapKind = "malformed"
)

var gapReasons = map[gapKind]string{
	gapExpired:   "at least one record of this range expired before it could be stored",
	gapPossible:  "records of this range may have expired before they could be stored: it is unknown whether there were any",
	gapMalformed: "all records of this range are malformed, and are stored below _pawl/malformed/",
}

func (o *Planned) gapKind() gapKind {
	switch {
	case o.Expired:
		return gapExpired
	case len(o.Malformed) > 0:
		return gapMalformed
	}
	return gapPossible
}

// gapNote is the content of an object that stands for a range without records.
type gapNote struct {
	Gap    Range   `json:"gap"`
	Shard  string  `json:"shard"`
	Kind   gapKind `json:"kind"`
	Reason string  `json:"reason"`
}

func newGapNote(shard string, o *Planned) []byte {
	kind := o.gapKind()
	return append(encodeJSON(gapNote{o.Range, shard, kind, gapReasons[kind]}), '\n')
}

// kindOfGap returns the kind that a note names.
func kindOfGap(body []byte) gapKind {
	var note gapNote
	_ = json.Unmarshal(body, &note) // what is no note names no kind
	if gapReasons[note.Kind] == "" {
		return gapPossible
	}
	return note.Kind
}
