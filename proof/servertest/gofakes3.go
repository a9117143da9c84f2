package servertest

import (
	"io"
	"log"
	"net/http/httptest"
	"testing"

	"github.com/pawlhq/pawl/internal/fakes3"
)

// S3 starts gofakes3 inside the test: quick, always there, without
// notifications, and believing any credentials.
func S3(t testing.TB) *Server {
	t.Helper()
	srv := httptest.NewUnstartedServer(fakes3.New())
	// It answers twice to some requests, which net/http remarks upon.
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.Start()
	t.Cleanup(srv.Close)
	return &Server{
		Name: "gofakes3", Endpoint: srv.URL, Region: "us-east-1", AccessKey: "pawl", SecretKey: secret(),
		MergesMetadata: true, LosesHeaders: true, InProcess: true,
	}
}
