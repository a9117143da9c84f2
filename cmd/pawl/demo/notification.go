package demo

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"time"
)

// The store's notifications have the format of Amazon S3.
// https://docs.aws.amazon.com/AmazonS3/latest/userguide/notification-content-structure.html
type (
	s3Message struct {
		Records []s3Record `json:"Records"`
	}
	s3Record struct {
		EventVersion string    `json:"eventVersion"`
		EventSource  string    `json:"eventSource"`
		AWSRegion    string    `json:"awsRegion"`
		EventTime    time.Time `json:"eventTime"`
		EventName    string    `json:"eventName"`
		S3           s3Entity  `json:"s3"`
	}
	s3Entity struct {
		SchemaVersion string   `json:"s3SchemaVersion"`
		Bucket        s3Bucket `json:"bucket"`
		Object        s3Object `json:"object"`
	}
	s3Bucket struct {
		Name string `json:"name"`
		ARN  string `json:"arn"`
	}
	s3Object struct {
		Key       string `json:"key"`
		Size      int64  `json:"size,omitzero"`
		ETag      string `json:"eTag,omitzero"`
		Sequencer string `json:"sequencer"`
	}
)

func notification(c change) []byte {
	name := "ObjectCreated:Put"
	if c.removed {
		name = "ObjectRemoved:Delete"
	}
	body, _ := json.Marshal(s3Message{Records: []s3Record{{
		EventVersion: "2.1", EventSource: "aws:s3", AWSRegion: region, EventTime: c.at, EventName: name,
		S3: s3Entity{
			SchemaVersion: "1.0",
			Bucket:        s3Bucket{Name: c.bucket, ARN: "arn:aws:s3:::" + c.bucket},
			Object:        s3Object{Key: formEncoded(c.key), Size: c.size, ETag: c.etag, Sequencer: sequencer(c.order)},
		},
	}}}) // strings and numbers can always be encoded
	return body
}

// formEncoded encodes a key as S3 does: form encoding that leaves slashes unchanged.
func formEncoded(key string) string {
	return strings.ReplaceAll(url.QueryEscape(key), "%2F", "/")
}

// sequencer has the format of Amazon: 18 digits that begin with 00.
func sequencer(order uint64) string { return fmt.Sprintf("%018X", order) }
