package event

import "github.com/go-json-experiment/json"

// Keys of an r2Event are not encoded, and there is no sequencer.
//
// https://developers.cloudflare.com/r2/buckets/event-notifications/
type r2Event struct {
	Action string `json:"action"`
	Bucket string `json:"bucket"`
	Object struct {
		Key  string `json:"key"`
		Size size   `json:"size"`
		ETag string `json:"eTag"`
	} `json:"object"`
	EventTime string `json:"eventTime"`
}

var r2Kinds = map[string]Kind{
	"PutObject":               Created,
	"CopyObject":              Created,
	"CompleteMultipartUpload": Created,
	"DeleteObject":            Removed,
	"LifecycleDeletion":       Removed,
}

func (p *parser) parseR2(payload []byte) error {
	var e r2Event
	if err := json.Unmarshal(payload, &e); err != nil {
		return err
	}
	p.batch.Dialect = R2
	kind, ordered := r2Kinds[e.Action]
	if !ordered {
		p.batch.Ignored++
		return nil
	}
	return p.add(Event{
		Object: Object{Bucket: e.Bucket, Key: e.Object.Key},
		Kind:   kind,
		ETag:   e.Object.ETag,
		Size:   int64(e.Object.Size),
		Name:   e.Action,
	}, e.EventTime)
}
