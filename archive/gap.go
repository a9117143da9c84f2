package archive

import "github.com/go-json-experiment/json"

type gapKind string

const (
	// gapExpired means that a record of the range is known to have existed, but expired before it
	// was stored.
	gapExpired gapKind = "expired"
	// gapPossible means that the range may have had records. Gap notes of earlier versions have no
	// kind and count as gapPossible.
	gapPossible gapKind = "possibly expired"
	// gapMalformed means that all records of the range are malformed and stored below
	// _pawl/malformed/.
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

func kindOfGap(body []byte) gapKind {
	var note gapNote
	_ = json.Unmarshal(body, &note) // an invalid note has no kind
	if gapReasons[note.Kind] == "" {
		return gapPossible
	}
	return note.Kind
}
