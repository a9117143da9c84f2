package s3objects_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/pawlhq/pawl/files"
	"github.com/pawlhq/pawl/files/s3objects"
	"github.com/pawlhq/pawl/proof/servertest"
)

func fakeStore(t *testing.T, handler http.HandlerFunc) *s3objects.Bucket {
	srv := httptest.NewServer(handler)
	t.Cleanup(srv.Close)
	return s3objects.New(s3.New(s3.Options{
		BaseEndpoint: &srv.URL, Region: "us-east-1", UsePathStyle: true,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "key", SecretAccessKey: "secret"}, nil
		}),
	}), "bucket", "").AcceptForgeable()
}

func TestSignedTimes(t *testing.T) {
	srv := servertest.MinIO(t, servertest.Options{})
	b := s3objects.New(srv.Client(), srv.NewBucket(t), "").AcceptForgeable()
	f := &files.File{ID: "id", Entity: "e", Key: "files/id", Promise: promise(text)}
	until := time.Now().Add(10 * time.Minute)
	put, err := b.Sign(t.Context(), f, until)
	if err != nil {
		t.Fatal(err)
	}
	if end := expiry(t, put.URL); end.After(until) || end.Before(until.Add(-time.Minute)) {
		t.Errorf("the URL of an upload until %v ends at %v", until, end)
	}
	part, err := b.SignPart(t.Context(), f, 1, [32]byte{}, until)
	if err != nil {
		t.Fatal(err)
	}
	if end := expiry(t, part.URL); end.After(until) || end.Before(until.Add(-time.Minute)) {
		t.Errorf("the URL of a part until %v ends at %v", until, end)
	}
	get, err := b.SignGet(t.Context(), f, 5*time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if end := expiry(t, get); end.After(time.Now().Add(5*time.Minute)) || end.Before(time.Now().Add(4*time.Minute)) {
		t.Errorf("the URL of a download for 5 minutes ends at %v", end)
	}
}

func expiry(t *testing.T, signed string) time.Time {
	t.Helper()
	u, err := url.Parse(signed)
	if err != nil {
		t.Fatal(err)
	}
	at, err := time.Parse("20060102T150405Z", u.Query().Get("X-Amz-Date"))
	if err != nil {
		t.Fatal(err)
	}
	life, err := strconv.Atoi(u.Query().Get("X-Amz-Expires"))
	if err != nil {
		t.Fatal(err)
	}
	return at.Add(time.Duration(life) * time.Second)
}

func TestStatUsesStoreClock(t *testing.T) {
	date := time.Date(2031, 5, 6, 7, 8, 9, 0, time.UTC)
	b := fakeStore(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Date", date.Format(http.TimeFormat))
		if r.URL.Path == "/bucket/there" {
			w.Header().Set("Content-Length", "5")
			w.Header().Set("X-Amz-Checksum-Sha256", "LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ=")
			return
		}
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte("<Error><Code>NoSuchKey</Code></Error>")) // otherwise the test fails
	})
	for _, key := range []string{"there", "not there"} {
		seen, err := b.Stat(t.Context(), key)
		if err != nil || !seen.Date.Equal(date) || seen.Found != (key == "there") {
			t.Errorf("%s: %+v, %v", key, seen, err)
		}
	}
}
