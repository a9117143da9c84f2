package event

import (
	"bytes"
	"errors"
	"io"

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
)

func (f form) String() string {
	return [...]string{
		"nothing known", "S3 records", "an S3 test event", "an SNS message",
		"EventBridge", "R2", "Pub/Sub", "Event Grid",
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
	}
	return formUnknown
}

// sniff finds the form of a payload from its top-level names. It stops at the
// first that decides, so that a payload is not read twice; what it has not
// read, the parser of that form will.
func sniff(payload []byte) (form, error) {
	dec := jsontext.NewDecoder(bytes.NewBuffer(payload))
	switch dec.PeekKind() {
	case '[':
		return formAzure, nil
	case '{':
		return sniffObject(dec)
	}
	if err := dec.SkipValue(); err != nil {
		return formUnknown, unexpectedEOF(err)
	}
	return formUnknown, nil
}

func sniffObject(dec *jsontext.Decoder) (form, error) {
	if _, err := dec.ReadToken(); err != nil {
		return formUnknown, err
	}
	var seen names
	for dec.PeekKind() != '}' {
		name, err := dec.ReadToken()
		if err != nil {
			return formUnknown, unexpectedEOF(err)
		}
		seen |= topLevel[name.String()]
		if f := seen.form(); f != formUnknown {
			return f, nil
		}
		if err := dec.SkipValue(); err != nil {
			return formUnknown, unexpectedEOF(err)
		}
	}
	return formUnknown, nil
}

// unexpectedEOF replaces the bare io.EOF with which the decoder meets an empty
// payload.
func unexpectedEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return errors.New("the payload is empty")
	}
	return err
}
