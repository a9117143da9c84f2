package event

import (
	"fmt"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// gcsAttributes is what Cloud Storage says of a change in the attributes of a
// Pub/Sub message. Its data, which a configuration may leave out, is not
// needed: it would add the size, and an ETag that S3 clients never see.
// https://cloud.google.com/storage/docs/pubsub-notifications#attributes
type gcsAttributes struct {
	EventType  string `json:"eventType"`
	EventTime  string `json:"eventTime"`
	BucketID   string `json:"bucketId"`
	ObjectID   string `json:"objectId"`
	Generation string `json:"objectGeneration"`
}

// gcsChange is a kind of change and its place among those of one generation.
type gcsChange struct {
	kind Kind
	rank byte
}

// gcsChanges lists the ordered changes. A generation is first written, then
// perhaps archived, which takes the live object away and keeps it as an old
// version, and at last deleted.
var gcsChanges = map[string]gcsChange{
	"OBJECT_FINALIZE": {Created, '1'},
	"OBJECT_ARCHIVE":  {Removed, '2'},
	"OBJECT_DELETE":   {Removed, '3'},
}

func (p *parser) parseGCS(payload []byte) error {
	var doc struct {
		Message jsontext.Value `json:"message"`
	}
	if err := json.Unmarshal(payload, &doc); err != nil {
		return err
	}
	var message struct {
		Attributes gcsAttributes `json:"attributes"`
	}
	if doc.Message.Kind() == '{' {
		if err := json.Unmarshal(doc.Message, &message); err != nil {
			return err
		}
	}
	a := &message.Attributes
	if a.EventType == "" {
		return p.unknownDialect("a Pub/Sub message without the attributes of Cloud Storage")
	}
	p.batch.Dialect = GCS
	change, ordered := gcsChanges[a.EventType]
	if !ordered {
		p.batch.Ignored++
		return nil
	}
	seq, err := gcsSequencer(a.Generation, change.rank)
	if err != nil {
		return p.malformedObject(Object{Bucket: a.BucketID, Key: a.ObjectID}, err)
	}
	return p.add(Event{
		Object:    Object{Bucket: a.BucketID, Key: a.ObjectID, VersionID: a.Generation},
		Kind:      change.kind,
		Sequencer: seq,
		Name:      a.EventType,
	}, a.EventTime)
}

// gcsSequencer makes a sequencer of a generation, which is a decimal number
// that rises with every write of a key. The events about one generation share
// it, so the rank goes behind: 16 digits of generation, and a last digit that
// is never zero, keep
//
//	write N < archive N < delete N < write N+1
//
// also in the canonical form, which drops zeros at the end. The archiving or
// deletion that an overwrite causes is about the generation overwritten and so
// older than the write.
func gcsSequencer(generation string, rank byte) (Sequencer, error) {
	n, err := strconv.ParseUint(generation, 10, 64)
	if err != nil {
		return Sequencer{}, fmt.Errorf("objectGeneration %s is not a decimal number", quoteShort(generation))
	}
	return ParseSequencer(fmt.Sprintf("%016X%c", n, rank))
}
