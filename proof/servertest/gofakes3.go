package servertest

import (
	"io"
	"log"
	"net/http/httptest"
	"testing"

	"github.com/pawlhq/pawl/internal/fakes3"
)

// S3 starts gofakes3 in the test's process. It sends no notifications and accepts any credentials.
func S3(t testing.TB) *Server {
	t.Helper()
	srv := httptest.NewUnstartedServer(fakes3.New())
	// gofakes3 answers some requests twice, which net/http would log.
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.Start()
	t.Cleanup(srv.Close)
	return &Server{
		Name: "gofakes3", Endpoint: srv.URL, Region: "us-east-1", AccessKey: "pawl", SecretKey: secret(),
		MergesMetadata: true, LosesHeaders: true, InProcess: true,
	}
}
