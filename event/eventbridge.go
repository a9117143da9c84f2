package event

import "github.com/go-json-experiment/json"

// The keys of a bridgeEvent are not encoded.
//
// https://docs.aws.amazon.com/AmazonS3/latest/userguide/ev-events.html
type bridgeEvent struct {
	DetailType string `json:"detail-type"`
	Source     string `json:"source"`
	Time       string `json:"time"`
	Detail     struct {
		DeletionType string `json:"deletion-type"`
		Bucket       struct {
			Name string `json:"name"`
		} `json:"bucket"`
		Object struct {
			Key       string `json:"key"`
			Size      size   `json:"size"`
			ETag      string `json:"etag"`
			VersionID string `json:"version-id"`
			Sequencer string `json:"sequencer"`
		} `json:"object"`
	} `json:"detail"`
}

// An expiration by a lifecycle rule is an "Object Deleted".
var bridgeKinds = map[string]Kind{
	"Object Created": Created,
	"Object Deleted": Removed,
}

func (p *parser) parseEventBridge(payload []byte) error {
	var e bridgeEvent
	if err := json.Unmarshal(payload, &e); err != nil {
		return err
	}
	if e.Source != "aws.s3" {
		return p.unknownDialect("EventBridge event from %s, not aws.s3", quoteShort(e.Source))
	}
	p.batch.Dialect = EventBridge
	kind, ordered := bridgeKinds[e.DetailType]
	if !ordered {
		p.batch.Ignored++
		return nil
	}
	o := &e.Detail.Object
	seq, err := ParseSequencer(o.Sequencer)
	if err != nil {
		return p.malformedObject(Object{Bucket: e.Detail.Bucket.Name, Key: o.Key, VersionID: o.VersionID}, err)
	}
	return p.add(Event{
		Object:    Object{Bucket: e.Detail.Bucket.Name, Key: o.Key, VersionID: o.VersionID},
		Kind:      kind,
		Sequencer: seq,
		ETag:      o.ETag,
		Size:      int64(o.Size),
		Name:      e.name(),
	}, e.Time)
}

func (e *bridgeEvent) name() string {
	if e.Detail.DeletionType == "Permanently Deleted" {
		return e.DetailType + ":Delete"
	}
	return e.DetailType
}
