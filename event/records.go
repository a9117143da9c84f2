package event

import (
	"fmt"
	"net/url"
	"strings"
)

// record is also used by MinIO, versitygw and Ceph.
//
// https://docs.aws.amazon.com/AmazonS3/latest/userguide/notification-content-structure.html
type record struct {
	EventVersion string `json:"eventVersion"`
	EventSource  string `json:"eventSource"`
	EventTime    string `json:"eventTime"`
	EventName    string `json:"eventName"`
	S3           struct {
		Bucket struct {
			Name string `json:"name"`
		} `json:"bucket"`
		Object struct {
			Key       string `json:"key"`
			Size      size   `json:"size"`
			ETag      string `json:"eTag"`
			VersionID string `json:"versionId"`
			Sequencer string `json:"sequencer"`
		} `json:"object"`
	} `json:"s3"`
}

// recordKinds maps event names without "s3:". Other events have no sequencer, or a meaningless one.
var recordKinds = map[string]Kind{
	"ObjectCreated:Put":                       Created,
	"ObjectCreated:Post":                      Created,
	"ObjectCreated:Copy":                      Created,
	"ObjectCreated:CompleteMultipartUpload":   Created,
	"ObjectRemoved:Delete":                    Removed,
	"ObjectRemoved:DeleteMarkerCreated":       Removed,
	"ObjectRemoved:DeleteAllVersions":         Removed, // MinIO
	"ObjectRemoved:DeleteObjects":             Removed, // versitygw, one of several objects
	"LifecycleExpiration:Delete":              Removed,
	"LifecycleExpiration:DeleteMarkerCreated": Removed,
	"ObjectLifecycle:Expiration:Current":      Removed, // Ceph's older name
}

func (p *parser) addRecord(r *record) error {
	if err := p.detectDialect(r); err != nil {
		return err
	}
	if major, _, _ := strings.Cut(r.EventVersion, "."); major != "2" {
		return p.malformed("eventVersion %s: only 2.x is supported", quoteShort(r.EventVersion))
	}
	name := strings.TrimPrefix(r.EventName, "s3:")
	kind, ordered := recordKinds[name]
	if !ordered {
		p.batch.Ignored++
		return nil
	}
	o := &r.S3.Object
	key, err := p.batch.Dialect.decodeKey(o.Key)
	if err != nil {
		return p.malformed("%w", err)
	}
	seq, err := p.batch.Dialect.parseSequencer(o.Sequencer)
	if err != nil {
		return p.malformedObject(Object{Bucket: r.S3.Bucket.Name, Key: key, VersionID: o.VersionID}, err)
	}
	return p.add(Event{
		Object:    Object{Bucket: r.S3.Bucket.Name, Key: key, VersionID: o.VersionID},
		Kind:      kind,
		Sequencer: seq,
		ETag:      o.ETag,
		Size:      int64(o.Size),
		Name:      name,
	}, r.EventTime)
}

// All records must have the same dialect.
func (p *parser) detectDialect(r *record) error {
	if p.requested != Detect {
		return nil
	}
	d := r.dialect()
	switch batch := p.batch.Dialect; {
	case d == batch && d != Detect:
		return nil
	case batch != Detect:
		return p.malformed("eventSource %s differs from that of the records before", quoteShort(r.EventSource))
	case d == Detect:
		return p.unknownDialect("unknown eventSource %s: set the dialect if one fits", quoteShort(r.EventSource))
	}
	p.batch.Dialect = d
	return nil
}

// versitygw also claims the eventSource aws:s3, but prefixes event names with "s3:".
func (r *record) dialect() Dialect {
	switch r.EventSource {
	case "minio:s3":
		return MinIO
	case "ceph:s3":
		return Ceph
	case "aws:s3":
		if strings.HasPrefix(r.EventName, "s3:") {
			return VersityGW
		}
		return AWS
	}
	return Detect
}

// AWS and MinIO encode keys like form values, with + for a space. versitygw and Ceph do not encode them, so
// decoding would turn a+b into "a b".
func (d Dialect) decodeKey(key string) (string, error) {
	if d != AWS && d != MinIO {
		return key, nil
	}
	decoded, err := url.QueryUnescape(key)
	if err != nil {
		return "", fmt.Errorf("key %s has an invalid percent escape", quoteShort(key))
	}
	return decoded, nil
}

func (d Dialect) parseSequencer(raw string) (Sequencer, error) {
	if d == Ceph {
		return cephSequencer(raw)
	}
	return ParseSequencer(raw)
}
