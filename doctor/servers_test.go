package doctor_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/bucket/s3bucket"
	"github.com/pawlhq/pawl/doctor"
	"github.com/pawlhq/pawl/proof/servertest"
)

func TestServers(t *testing.T) {
	t.Run("gofakes3", func(t *testing.T) { examineServer(t, servertest.S3(t)) })
	servertest.Each(t, servertest.Options{}, examineServer)
	t.Run("copies", func(t *testing.T) {
		examineServer(t, servertest.WithCopyConditions(t, servertest.MinIO(t, servertest.Options{})))
	})
}

func open(t *testing.T, srv *servertest.Server, secret string) *s3bucket.Store {
	t.Helper()
	store, err := s3bucket.New(t.Context(), s3bucket.Config{
		Endpoint: srv.Endpoint, Region: srv.Region, PathStyle: true, AccessKey: srv.AccessKey, SecretKey: secret,
	})
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func wantEmpty(t *testing.T, store bucket.Store, b string) {
	t.Helper()
	for info, err := range store.List(context.WithoutCancel(t.Context()), b, "", "") {
		t.Errorf("left behind: %q %v", info.Key, err)
	}
}

func examineServer(t *testing.T, srv *servertest.Server) {
	store, b := open(t, srv, srv.SecretKey), srv.NewBucket(t)
	r, err := doctor.Examine(t.Context(), store, b, "p/", doctor.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range r.Checks {
		want := doctor.OK
		if c.Name == "delete-match" && !srv.DeleteConditions {
			want = doctor.Ignored
		}
		if c.Name == "copy-whole" && srv.CopyConditions&bucket.CopyWhole == 0 {
			want = doctor.Ignored
		}
		if c.Name == "copy-parts" && srv.CopyConditions&bucket.CopyParts == 0 {
			want = doctor.Failed // gofakes3 does not implement UploadPartCopy
		}
		if c.Verdict != want {
			t.Errorf("%s: %s, want %s: %s", c.Name, c.Verdict, want, c.Detail)
		}
	}
	safety := make(map[string]doctor.Safety)
	for _, f := range r.Features {
		safety[f.Name] = f.Safety
	}
	want := map[string]doctor.Safety{
		"pipeline outputs": doctor.Safe, "removals of outputs": doctor.Limited, "locks": doctor.Safe, "update": doctor.Safe,
		"semaphores and shared locks": doctor.Safe, "audit": doctor.Safe,
		"archives": doctor.Safe, "copy": doctor.Limited,
	}
	if srv.CopyConditions == bucket.CopyWhole|bucket.CopyParts {
		want["copy"] = doctor.Safe
	}
	if srv.DeleteConditions {
		want["removals of outputs"] = doctor.Safe
	}
	if diff := cmp.Diff(want, safety); diff != "" {
		t.Errorf("features (-want +got):\n%s", diff)
	}
	wantEmpty(t, store, b)
	if srv.CopyConditions&bucket.CopyWhole == 0 { // not behind a proxy
		wantDocumented(t, srv.Name, r)
	}

	if err := doctor.Prove(t.Context(), store, b, "p/", doctor.Locks); err != nil {
		t.Error(err)
	}
	wantEmpty(t, store, b)

	ctx, cancel := context.WithCancel(t.Context())
	_, err = doctor.Examine(ctx, store, b, "", doctor.Options{Progress: func(check string, _, _ int) {
		if check == "delete-match" {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
	wantEmpty(t, store, b)

	_, err = doctor.Examine(t.Context(), store, b+"-other", "", doctor.Options{})
	wantKind(t, err, bucket.ErrNoBucket)
	wantKind(t, doctor.Prove(t.Context(), store, b+"-other", "", doctor.Locks), bucket.ErrNoBucket)
	if srv.Credentials {
		_, err = doctor.Examine(t.Context(), open(t, srv, "wrong"), b, "", doctor.Options{})
		wantKind(t, err, bucket.ErrDenied)
	}
}

func wantKind(t *testing.T, err, kind error) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Errorf("%v, want %v", err, kind)
	}
}
