package doctor_test

import (
	"testing"

	"github.com/pawlhq/pawl/bucket/s3bucket"
	"github.com/pawlhq/pawl/doctor"
	"github.com/pawlhq/pawl/internal/servertest"
)

func TestServers(t *testing.T) {
	t.Run("gofakes3", func(t *testing.T) { examineServer(t, servertest.S3(t)) })
	servertest.Each(t, servertest.Options{}, examineServer)
}

func examineServer(t *testing.T, srv *servertest.Server) {
	store, err := s3bucket.New(t.Context(), s3bucket.Config{
		Endpoint: srv.Endpoint, Region: srv.Region, PathStyle: true,
		AccessKey: srv.AccessKey, SecretKey: srv.SecretKey,
	})
	if err != nil {
		t.Fatal(err)
	}
	b := srv.NewBucket(t)
	r, err := doctor.Examine(t.Context(), store, b, "", doctor.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range r.Checks {
		t.Log(c.Name, c.Verdict, c.Detail)
	}
	for _, c := range r.Features {
		t.Log(c)
	}
	if err := doctor.Quick(t.Context(), store, b, ""); err != nil {
		t.Error(err)
	}
	for i, err := range store.List(t.Context(), b, "", "") {
		t.Error(i, err)
	}
}
