package s3bucket

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/event"
)

// Notification is one notification rule of a bucket.
type Notification struct {
	To string
	// Events are like s3:ObjectCreated:Put or s3:ObjectRemoved:*.
	Events         []string
	Prefix, Suffix string
}

// EventBridge has no event filter.
var allEvents = []string{"s3:ObjectCreated:*", "s3:ObjectRemoved:*"}

const maxConfiguration = 1 << 20

// Notifications returns the notification rules of a bucket, or ErrInvalid if the store keeps no
// such rules. Other errors match ErrNoBucket, ErrDenied or ErrUnavailable.
func (s *Store) Notifications(ctx context.Context, name string) ([]Notification, error) {
	var root string
	out, err := s.client.GetBucketNotificationConfiguration(ctx,
		&s3.GetBucketNotificationConfigurationInput{Bucket: &name},
		func(o *s3.Options) { o.HTTPClient = &rootReader{client: o.HTTPClient, root: &root} })
	if err != nil {
		return nil, readError("reading the notification configuration of", event.Object{Bucket: name}, err)
	}
	// A store without this request may return another document, such as a listing.
	if root != "NotificationConfiguration" {
		return nil, fmt.Errorf("reading the notification configuration of %s: %w: the response is another document, with the root element %s",
			event.Quote("s3://"+name), bucket.ErrInvalid, event.Quote(root))
	}
	var all []Notification
	for _, q := range out.QueueConfigurations {
		all = append(all, notification(q.QueueArn, q.Events, q.Filter))
	}
	for _, t := range out.TopicConfigurations {
		all = append(all, notification(t.TopicArn, t.Events, t.Filter))
	}
	for _, l := range out.LambdaFunctionConfigurations {
		all = append(all, notification(l.LambdaFunctionArn, l.Events, l.Filter))
	}
	if out.EventBridgeConfiguration != nil {
		all = append(all, Notification{To: "EventBridge", Events: allEvents})
	}
	return all, nil
}

func notification(to *string, events []types.Event, filter *types.NotificationConfigurationFilter) Notification {
	n := Notification{To: aws.ToString(to)}
	for _, e := range events {
		n.Events = append(n.Events, string(e))
	}
	if filter == nil || filter.Key == nil {
		return n
	}
	for _, rule := range filter.Key.FilterRules {
		switch strings.ToLower(string(rule.Name)) {
		case "prefix":
			n.Prefix = aws.ToString(rule.Value)
		case "suffix":
			n.Suffix = aws.ToString(rule.Value)
		}
	}
	return n
}

type rootReader struct {
	client s3.HTTPClient
	root   *string
}

// Do implements [s3.HTTPClient].
func (r *rootReader) Do(req *http.Request) (*http.Response, error) {
	resp, err := r.client.Do(req)
	if err != nil {
		return resp, err
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxConfiguration))
	if err := errors.Join(err, resp.Body.Close()); err != nil {
		return nil, err
	}
	resp.Body = io.NopCloser(bytes.NewReader(text))
	*r.root, _ = rootOf(bytes.NewReader(text)) // an invalid document has no root
	return resp, nil
}
