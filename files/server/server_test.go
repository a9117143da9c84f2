package server

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/pawlhq/pawl/bucket/s3bucket"
	"github.com/pawlhq/pawl/files"
	"github.com/pawlhq/pawl/files/s3objects"
	"github.com/pawlhq/pawl/internal/servertest"
	"github.com/pawlhq/pawl/store/memory"
)

// TestCheck: a store that is not fit for files ends the server, and one that is down is
// waited for.
func TestCheck(t *testing.T) {
	srv := servertest.MinIO(t, servertest.Options{})
	name := srv.NewBucket(t)
	check := func(endpoint string, forgeable bool) error {
		store, err := s3bucket.New(t.Context(), s3bucket.Config{Endpoint: endpoint, PathStyle: true, AccessKey: srv.AccessKey, SecretKey: srv.SecretKey})
		if err != nil {
			t.Fatal(err)
		}
		s, err := New(Config{
			Index: memory.New(), Store: store, Bucket: name, Prefix: "files/", AcceptForgeableUploads: forgeable, Logger: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			t.Fatal(err)
		}
		return s.check(t.Context())
	}
	if err := check(srv.Endpoint, false); !errors.Is(err, s3objects.ErrForgeable) || !strings.Contains(err.Error(), "STREAMING-UNSIGNED-PAYLOAD-TRAILER") {
		t.Errorf("forgeable: %v", err)
	}
	if err := check(srv.Endpoint, true); err != nil {
		t.Error(err)
	}
	if err := check("http://127.0.0.1:1", false); err != nil {
		t.Errorf("down: %v", err)
	}
	_, err := srv.Client().PutBucketVersioning(t.Context(), &s3.PutBucketVersioningInput{
		Bucket: &name, VersioningConfiguration: &types.VersioningConfiguration{Status: types.BucketVersioningStatusEnabled},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := check(srv.Endpoint, true); err == nil || !strings.Contains(err.Error(), "suspend its versioning") {
		t.Errorf("versions: %v", err)
	}
}

// TestNew: defaults are those of the documentation, and a prefix has no character that a
// URL gives a meaning.
func TestNew(t *testing.T) {
	store, err := s3bucket.New(t.Context(), s3bucket.Config{Endpoint: "http://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(Config{Index: memory.New(), Store: store, Bucket: "b"})
	if err != nil {
		t.Fatal(err)
	}
	if want := (files.Usage{Bytes: 10 << 30, Open: 1000}); s.service.Times.Upload != time.Hour || s.service.Limit("e") != want || s.MaxSize != 1<<30 || s.Listen != "127.0.0.1:8090" {
		t.Errorf("%+v, %+v", s.Config, s.service.Times)
	}
	for _, c := range []Config{{Prefix: "a%2Fb/"}, {Prefix: "a?b/"}, {Prefix: "a#b/"}, {MaxSize: 5<<40 + 1}} {
		c.Index, c.Store, c.Bucket = memory.New(), store, "b"
		if _, err := New(c); err == nil {
			t.Errorf("%q and %d bytes are accepted", c.Prefix, c.MaxSize)
		}
	}
}
