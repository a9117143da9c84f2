package s3bucket_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/bucket/s3bucket"
	"github.com/pawlhq/pawl/proof/servertest"
)

func TestNotifications(t *testing.T) {
	const configured = `<?xml version="1.0"?>
<NotificationConfiguration xmlns="http://s3.amazonaws.com/doc/2006-03-01/">
<QueueConfiguration><Queue>arn:q</Queue><Event>s3:ObjectCreated:*</Event><Event>s3:ObjectRemoved:Delete</Event>
<Filter><S3Key><FilterRule><Name>Prefix</Name><Value>in/</Value></FilterRule>
<FilterRule><Name>suffix</Name><Value>.jpg</Value></FilterRule></S3Key></Filter></QueueConfiguration>
<TopicConfiguration><Topic>arn:t</Topic><Event>s3:ObjectRemoved:*</Event></TopicConfiguration>
<CloudFunctionConfiguration><CloudFunction>arn:f</CloudFunction><Event>s3:ObjectCreated:Put</Event></CloudFunctionConfiguration>
<EventBridgeConfiguration></EventBridgeConfiguration>
</NotificationConfiguration>`
	for _, tc := range []struct {
		name, answer string
		status       int
		want         []s3bucket.Notification
		err          error
	}{
		{"several", configured, 200, []s3bucket.Notification{
			{To: "arn:q", Events: []string{"s3:ObjectCreated:*", "s3:ObjectRemoved:Delete"}, Prefix: "in/", Suffix: ".jpg"},
			{To: "arn:t", Events: []string{"s3:ObjectRemoved:*"}},
			{To: "arn:f", Events: []string{"s3:ObjectCreated:Put"}},
			{To: "EventBridge", Events: []string{"s3:ObjectCreated:*", "s3:ObjectRemoved:*"}},
		}, nil},
		{"none", "<NotificationConfiguration/>", 200, nil, nil},
		{"a listing", "<ListBucketResult><Name>b</Name></ListBucketResult>", 200, nil, bucket.ErrInvalid},
		{"nothing", "", 200, nil, bucket.ErrInvalid},
		{"not implemented", "<Error><Code>NotImplemented</Code></Error>", 501, nil, bucket.ErrInvalid},
		{"denied", "<Error><Code>AccessDenied</Code></Error>", 403, nil, bucket.ErrDenied},
		{"no bucket", "<Error><Code>NoSuchBucket</Code></Error>", 404, nil, bucket.ErrNoBucket},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if _, asked := r.URL.Query()["notification"]; !asked {
					t.Errorf("asked for %s", r.URL)
				}
				w.WriteHeader(tc.status)
				_, _ = io.WriteString(w, tc.answer)
			})
			got, err := s.Notifications(t.Context(), "b")
			if !errors.Is(err, tc.err) {
				t.Errorf("error %v, want %v", err, tc.err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestNotificationsOnServers(t *testing.T) {
	t.Run("minio", func(t *testing.T) {
		hook := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		t.Cleanup(hook.Close)
		srv := servertest.MinIO(t, servertest.Options{Webhook: hook.URL})
		s, b := open(t, srv, srv.SecretKey), srv.NewBucket(t)
		if got, err := s.Notifications(t.Context(), b); err != nil || len(got) > 0 {
			t.Errorf("before there are any: %v, %v", got, err)
		}
		srv.Notify(t, b)
		got, err := s.Notifications(t.Context(), b)
		want := []s3bucket.Notification{{To: "arn:minio:sqs::H:webhook", Events: []string{"s3:ObjectCreated:*", "s3:ObjectRemoved:*"}}}
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	})
	unable := func(t *testing.T, srv *servertest.Server) {
		got, err := open(t, srv, srv.SecretKey).Notifications(t.Context(), srv.NewBucket(t))
		want(t, "Notifications", err, bucket.ErrInvalid)
		if len(got) > 0 {
			t.Errorf("%v", got)
		}
	}
	t.Run("gofakes3", func(t *testing.T) { unable(t, servertest.S3(t)) })
	t.Run("versitygw", func(t *testing.T) { unable(t, servertest.VersityGW(t, servertest.Options{})) })
}
