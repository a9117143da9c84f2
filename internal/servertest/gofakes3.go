package servertest

import (
	"io"
	"log"
	"net/http/httptest"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
)

// S3 starts gofakes3 inside the test: quick, always there, without
// notifications, and believing any credentials.
func S3(t testing.TB) *Server {
	t.Helper()
	fake := gofakes3.New(s3mem.New(), gofakes3.WithLogger(gofakes3.StdLog(log.New(io.Discard, "", 0))))
	srv := httptest.NewServer(fake.Server())
	t.Cleanup(srv.Close)
	return &Server{
		Name: "gofakes3", Endpoint: srv.URL, Region: "us-east-1", AccessKey: "pawl", SecretKey: secret(),
		InProcess: true,
	}
}
