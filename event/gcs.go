package event

import (
	"fmt"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// gcsAttributes are the attributes of a Pub/Sub message from Cloud Storage. The optional data of the
// message adds only the size and an ETag that S3 clients never see.
//
// https://cloud.google.com/storage/docs/pubsub-notifications#attributes
type gcsAttributes struct {
	EventType  string `json:"eventType"`
	EventTime  string `json:"eventTime"`
	BucketID   string `json:"bucketId"`
	ObjectID   string `json:"objectId"`
	Generation string `json:"objectGeneration"`
}

type gcsChange struct {
	kind Kind
	rank byte
}

// A generation is written, then possibly archived (it becomes a noncurrent version), and finally deleted.
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

// gcsSequencer appends the rank to a generation, a number that rises with every write of a key. 16 digits
// of generation and a last digit that is never zero give
//
//	write N < archive N < delete N < write N+1
//
// An overwrite archives or deletes the previous generation, so that event is older than the write's.
func gcsSequencer(generation string, rank byte) (Sequencer, error) {
	n, err := strconv.ParseUint(generation, 10, 64)
	if err != nil {
		return Sequencer{}, fmt.Errorf("objectGeneration %s is not a decimal number", quoteShort(generation))
	}
	return ParseSequencer(fmt.Sprintf("%016X%c", n, rank))
}
