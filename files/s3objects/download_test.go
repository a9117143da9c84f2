package s3objects

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/pawlhq/pawl/files"
)

func TestSignGet(t *testing.T) {
	date := func(signed string) string {
		u, err := url.Parse(signed)
		if err != nil {
			t.Fatal(err)
		}
		return u.Query().Get("X-Amz-Date")
	}
	for name, o := range map[string]s3.Options{
		"path":      {Region: "us-east-1", BaseEndpoint: aws.String("http://127.0.0.1:9000"), UsePathStyle: true},
		"base path": {Region: "us-east-1", BaseEndpoint: aws.String("https://proxy.example/store"), UsePathStyle: true},
		"port 80":   {Region: "us-east-1", BaseEndpoint: aws.String("http://store.example:80"), UsePathStyle: true},
		"port 443":  {Region: "us-east-1", BaseEndpoint: aws.String("https://store.example:443")},
		"host":      {Region: "eu-central-1"},
		"dualstack": {Region: "eu-central-1", EndpointOptions: s3.EndpointResolverOptions{UseDualStackEndpoint: aws.DualStackEndpointStateEnabled}},
	} {
		o.Credentials = credentials.NewStaticCredentialsProvider("AKID", "secret", "a session/token+=")
		for _, bucket := range []string{"bucket", "arn:aws:s3:us-west-2:123456789012:accesspoint:mine"} {
			b := New(s3.New(o), bucket, "")
			b.probed.Store(&probe{})
			for i, key := range []string{"files/019a0000-0000-7000-8000-000000000001", "a b/+&=%?#/ü~'()*!$,:;@", "/a//./../b/", "k", "%2F"} {
				f := &files.File{ID: "f", Key: key, Promise: files.Promise{ContentType: []string{"image/png", "text/html"}[i%2]}}
				var want, got string
				var err, other error
				for got == "" || date(want) != date(got) { // the second of the timestamp changed in between
					want, other = b.presignGet(t.Context(), f, 5*time.Minute)
					got, err = b.SignGet(t.Context(), f, 5*time.Minute)
					if (err != nil) != (other != nil) {
						t.Fatalf("%s, %s, %q: %v: the SDK says %v", name, bucket, key, err, other)
					}
					if err != nil {
						break
					}
				}
				if attached := strings.Contains(got, "&response-content-disposition=attachment&"); err == nil && attached != (i%2 == 1) {
					t.Errorf("%s of type %s is an attachment: %v", key, f.ContentType, attached)
				}
				if got != want {
					t.Errorf("%s, %s, %q: signed\n%s\nwant\n%s", name, bucket, key, got, want)
				}
			}
		}
	}
}

func BenchmarkSignGet(b *testing.B) {
	bucket := New(s3.New(s3.Options{
		Region: "us-east-1", BaseEndpoint: aws.String("http://127.0.0.1:9000"), UsePathStyle: true, Credentials: credentials.NewStaticCredentialsProvider("a", "s", ""),
	}), "bucket", "")
	bucket.probed.Store(&probe{})
	f := &files.File{Key: "files/019a0000-0000-7000-8000-000000000001"}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := bucket.SignGet(b.Context(), f, 5*time.Minute); err != nil {
			b.Fatal(err)
		}
	}
}
