package event

import (
	"fmt"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// gcsAttributes are the attributes of a Pub/Sub message from Cloud Storage. Pawl ignores the
// message's data, which is optional and only adds the size and an ETag that S3 clients never see.
//
// https://cloud.google.com/storage/docs/pubsub-notifications#attributes
type gcsAttributes struct {
	EventType  string `json:"eventType"`
	EventTime  string `json:"eventTime"`
	BucketID   string `json:"bucketId"`
	ObjectID   string `json:"objectId"`
	Generation string `json:"objectGeneration"`
}

// gcsChange is the kind of a change, and its order among the changes of one generation.
type gcsChange struct {
	kind Kind
	rank byte
}

// gcsChanges maps the changes that have an order. A generation is written, then possibly archived
// (it becomes a noncurrent version), and finally deleted.
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

// gcsSequencer returns the sequencer for a generation, a decimal number that rises with every
// write of a key. All changes of one generation share it, so gcsSequencer appends the rank: 16
// digits of generation and a last digit that is never zero give
//
//	write N < archive N < delete N < write N+1
//
// also in the canonical form, which drops trailing zeros. An overwrite archives or deletes the
// previous generation, so the event of that change is older than the event of the write.
func gcsSequencer(generation string, rank byte) (Sequencer, error) {
	n, err := strconv.ParseUint(generation, 10, 64)
	if err != nil {
		return Sequencer{}, fmt.Errorf("objectGeneration %s is not a decimal number", quoteShort(generation))
	}
	return ParseSequencer(fmt.Sprintf("%016X%c", n, rank))
}
