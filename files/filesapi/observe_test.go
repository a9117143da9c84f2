package filesapi_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/pawlhq/pawl/files"
	"github.com/pawlhq/pawl/files/filesapi"
	"github.com/pawlhq/pawl/store/memory"
)

func TestRequestsAreObserved(t *testing.T) {
	type observation struct {
		route  string
		status int
	}
	var got []observation
	keys := must(filesapi.Secret(secret))
	h, err := filesapi.New(filesapi.Config{
		Files: &files.Service{Index: files.NewIndex(memory.New())}, Tokens: must(filesapi.NewTokens(keys, filesapi.Claims{})), Cursors: secret,
		Logger: slog.New(slog.DiscardHandler), Observe: func(route string, status int, _ time.Duration) { got = append(got, observation{route, status}) },
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/openapi.yaml", "/v1/files/7", "/v1/uploads", "/secret", "//openapi.yaml"} {
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, path, nil))
	}
	want := []observation{{"GET /openapi.yaml", 200}, {"GET /v1/files/{id}", 401}, {"", 405}, {"", 404}, {"GET /openapi.yaml", 404}}
	if !slices.Equal(got, want) {
		t.Errorf("observed %v, want %v", got, want)
	}
}
