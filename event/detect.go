package event

import (
	"github.com/go-json-experiment/json/jsontext"
)

// form is how a payload is laid out. Several dialects may share one.
type form uint8

const (
	formUnknown form = iota
	formRecords      // {"Records":[…]}: AWS and those who follow it
	formTest         // {"Event":"s3:TestEvent"}
	formSNS          // an envelope of Amazon SNS
	formEventBridge
	formR2
	formGCS
	formAzure
	formListing // no notification: what list-objects-v2 answers
)

func (f form) String() string {
	return [...]string{
		"nothing known", "S3 records", "an S3 test event", "an SNS message",
		"EventBridge", "R2", "Pub/Sub", "Event Grid", "a listing of a bucket",
	}[f]
}

// fits reports whether payloads of this form can be of dialect d.
func (f form) fits(d Dialect) bool {
	switch d {
	case AWS, MinIO, VersityGW, Ceph:
		return f == formRecords || f == formTest
	case EventBridge:
		return f == formEventBridge
	case R2:
		return f == formR2
	case GCS:
		return f == formGCS
	case Azure:
		return f == formAzure
	}
	return false
}

// names is a set of the top-level names by which the forms are told apart.
type names uint16

const (
	nameRecords names = 1 << iota
	nameEvent
	nameType
	nameMessage
	nameDetailType
	nameAction
	nameBucket
	nameObject
	namePubSub
	nameEventType
	nameSubject
	nameSpecVersion
	nameContents
)

var topLevel = map[string]names{
	"Records":     nameRecords,
	"Event":       nameEvent,
	"Type":        nameType,
	"Message":     nameMessage,
	"detail-type": nameDetailType,
	"action":      nameAction,
	"bucket":      nameBucket,
	"object":      nameObject,
	"message":     namePubSub,
	"eventType":   nameEventType,
	"subject":     nameSubject,
	"specversion": nameSpecVersion,
	"Contents":    nameContents,
}

// form returns the form that the names seen so far settle, if any.
func (n names) form() form {
	has := func(all names) bool { return n&all == all }
	switch {
	case has(nameRecords):
		return formRecords
	case has(nameEvent):
		return formTest
	case has(nameType | nameMessage):
		return formSNS
	case has(nameDetailType):
		return formEventBridge
	case has(nameAction | nameBucket | nameObject):
		return formR2
	case has(namePubSub):
		return formGCS
	case has(nameEventType | nameSubject), has(nameSpecVersion | nameSubject):
		return formAzure
	case has(nameContents):
		return formListing
	}
	return formUnknown
}

// topObject reads the top level of a payload: it collects the names that are
// there, and reads the records, if there are any, on the way.
type topObject struct {
	p     *parser
	names names
	form  form
}

func (top *topObject) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	switch dec.PeekKind() {
	case '[':
		top.form = formAzure
		return dec.SkipValue()
	case '{':
	default:
		return dec.SkipValue()
	}
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	for dec.PeekKind() != '}' {
		if err := top.readMember(dec); err != nil {
			return err
		}
	}
	top.form = top.names.form()
	_, err := dec.ReadToken()
	return err
}

func (top *topObject) readMember(dec *jsontext.Decoder) error {
	token, err := dec.ReadToken()
	if err != nil {
		return err
	}
	name := topLevel[token.String()]
	top.names |= name
	if name != nameRecords {
		return dec.SkipValue()
	}
	if err := top.p.mustFit(formRecords); err != nil {
		return err
	}
	return eachRecord(top.p, dec, top.p.addRecord)
}
