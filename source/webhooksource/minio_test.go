package webhooksource_test

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/proof/servertest"
	"github.com/pawlhq/pawl/source"
	"github.com/pawlhq/pawl/source/sourcetest"
	"github.com/pawlhq/pawl/source/webhooksource"
)

// MinIO authenticates if its auth_token is the same text as Token, with one word or two.
func TestMinIO(t *testing.T) {
	for _, token := range []string{"t0ken", "Bearer t0ken"} {
		t.Run(token, func(t *testing.T) {
			sink := sourcetest.NewSink(1)
			e := serve(t, webhooksource.Config{Token: token}, sink)
			server := servertest.MinIO(t, servertest.Options{Webhook: e.url, Authorization: token})
			bucket, key := server.NewBucket(t), "a b+c/é.txt"
			server.Notify(t, bucket)
			_, err := server.Client().PutObject(t.Context(), &s3.PutObjectInput{
				Bucket: &bucket, Key: &key, Body: strings.NewReader("hello"),
			})
			if err != nil {
				t.Fatal(err)
			}
			first := sink.Next(t)
			first.Done(source.Outcome{})
			again := sink.Next(t)
			again.Done(source.Outcome{Ack: true})
			want := event.Object{Bucket: bucket, Key: key}
			for _, d := range []source.Delivery{first, again} {
				if len(d.Events) != 1 || d.Events[0].Object != want || d.Events[0].Dialect != event.MinIO {
					t.Errorf("delivered %+v, want %s", d.Events, want)
				}
			}
		})
	}
}
