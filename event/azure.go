package event

import (
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// azureEvent is an event of Azure Event Grid, in one of two schemas.
//
// https://learn.microsoft.com/azure/event-grid/event-schema-blob-storage
type azureEvent struct {
	Subject string `json:"subject"`
	// Event Grid's own schema, then CloudEvents 1.0.
	EventType string `json:"eventType"`
	EventTime string `json:"eventTime"`
	Type      string `json:"type"`
	Time      string `json:"time"`

	Data struct {
		ETag          string `json:"eTag"`
		ContentLength size   `json:"contentLength"`
		Sequencer     string `json:"sequencer"`
	} `json:"data"`
}

// azureKinds lacks BlobRenamed, which has two keys and one sequencer.
var azureKinds = map[string]Kind{
	"Microsoft.Storage.BlobCreated": Created,
	"Microsoft.Storage.BlobDeleted": Removed,
}

func (p *parser) parseAzure(payload []byte) error {
	list := azureList{p: p}
	if err := json.Unmarshal(payload, &list); err != nil {
		return err
	}
	// A handshake is alone in its payload.
	if list.handshakes > 0 && len(p.batch.Events)+p.batch.Ignored == 0 {
		p.batch.Test = true
	} else {
		p.batch.Ignored += list.handshakes
	}
	return p.rejectUndetected()
}

type azureList struct {
	p          *parser
	handshakes int
}

func (l *azureList) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if dec.PeekKind() == '[' {
		return eachRecord(l.p, dec, l.add)
	}
	var e azureEvent
	if err := json.UnmarshalDecode(dec, &e); err != nil {
		return err
	}
	return l.add(&e)
}

func (l *azureList) add(e *azureEvent) error {
	p := l.p
	if e.EventType == "" {
		e.EventType, e.EventTime = e.Type, e.Time
	}
	if !strings.HasPrefix(e.EventType, "Microsoft.Storage.") &&
		!strings.HasPrefix(e.EventType, "Microsoft.EventGrid.") {
		return p.unknownDialect("Event Grid event of type %s, not Microsoft.Storage", quoteShort(e.EventType))
	}
	p.batch.Dialect = Azure
	if e.EventType == "Microsoft.EventGrid.SubscriptionValidationEvent" {
		l.handshakes++
		return nil
	}
	kind, ordered := azureKinds[e.EventType]
	if !ordered {
		p.batch.Ignored++
		return nil
	}
	return p.addBlob(e, kind)
}

// The container becomes the bucket, without the storage account: one ledger must not serve two accounts
// that have containers of the same name. The subject has the unencoded name of the blob. data.url is
// unencoded as well, and is not a valid URL if the name contains a #
// (https://github.com/Azure/azure-sdk-for-net/issues/23634).
func (p *parser) addBlob(e *azureEvent, kind Kind) error {
	const prefix = "/blobServices/default/containers/"
	path, ok := strings.CutPrefix(e.Subject, prefix)
	container, blob, ok2 := strings.Cut(path, "/blobs/")
	if !ok || !ok2 {
		return p.malformed("subject %s is not %s<container>/blobs/<name>", quoteShort(e.Subject), prefix)
	}
	seq, err := ParseSequencer(e.Data.Sequencer)
	if err != nil {
		return p.malformedObject(Object{Bucket: container, Key: blob}, err)
	}
	return p.add(Event{
		Object:    Object{Bucket: container, Key: blob},
		Kind:      kind,
		Sequencer: seq,
		ETag:      e.Data.ETag,
		Size:      int64(e.Data.ContentLength),
		Name:      e.EventType,
	}, e.EventTime)
}
