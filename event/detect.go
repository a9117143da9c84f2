package event

import (
	"github.com/go-json-experiment/json/jsontext"
)

// Several dialects may share one layout.
type layout uint8

const (
	layoutUnknown layout = iota
	layoutRecords        // {"Records":[…]}: AWS and compatible stores
	layoutTest           // {"Event":"s3:TestEvent"}
	layoutSNS            // the envelope of Amazon SNS
	layoutEventBridge
	layoutR2
	layoutGCS
	layoutAzure
	layoutListing // of list-objects-v2; not a notification
)

func (l layout) String() string {
	return [...]string{
		"an unknown format", "S3 records", "an S3 test event", "an SNS message",
		"EventBridge", "R2", "Pub/Sub", "Event Grid", "a listing of a bucket",
	}[l]
}

func (l layout) matches(d Dialect) bool {
	switch d {
	case AWS, MinIO, VersityGW, Ceph:
		return l == layoutRecords || l == layoutTest
	case EventBridge:
		return l == layoutEventBridge
	case R2:
		return l == layoutR2
	case GCS:
		return l == layoutGCS
	case Azure:
		return l == layoutAzure
	}
	return false
}

type memberSet uint16

const (
	memberRecords memberSet = 1 << iota
	memberEvent
	memberType
	memberMessage
	memberDetailType
	memberAction
	memberBucket
	memberObject
	memberPubSub
	memberEventType
	memberSubject
	memberSpecVersion
	memberContents
)

var topLevelMembers = map[string]memberSet{
	"Records":     memberRecords,
	"Event":       memberEvent,
	"Type":        memberType,
	"Message":     memberMessage,
	"detail-type": memberDetailType,
	"action":      memberAction,
	"bucket":      memberBucket,
	"object":      memberObject,
	"message":     memberPubSub,
	"eventType":   memberEventType,
	"subject":     memberSubject,
	"specversion": memberSpecVersion,
	"Contents":    memberContents,
}

func (n memberSet) layout() layout {
	has := func(all memberSet) bool { return n&all == all }
	switch {
	case has(memberRecords):
		return layoutRecords
	case has(memberEvent):
		return layoutTest
	case has(memberType | memberMessage):
		return layoutSNS
	case has(memberDetailType):
		return layoutEventBridge
	case has(memberAction | memberBucket | memberObject):
		return layoutR2
	case has(memberPubSub):
		return layoutGCS
	case has(memberEventType | memberSubject), has(memberSpecVersion | memberSubject):
		return layoutAzure
	case has(memberContents):
		return layoutListing
	}
	return layoutUnknown
}

type topObject struct {
	p       *parser
	members memberSet
	layout  layout
}

func (top *topObject) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	switch dec.PeekKind() {
	case '[':
		top.layout = layoutAzure
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
	top.layout = top.members.layout()
	_, err := dec.ReadToken()
	return err
}

func (top *topObject) readMember(dec *jsontext.Decoder) error {
	token, err := dec.ReadToken()
	if err != nil {
		return err
	}
	name := topLevelMembers[token.String()]
	top.members |= name
	if name != memberRecords {
		return dec.SkipValue()
	}
	if err := top.p.checkLayout(layoutRecords); err != nil {
		return err
	}
	return eachRecord(top.p, dec, top.p.addRecord)
}
