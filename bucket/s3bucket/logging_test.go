package s3bucket_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawlhq/pawl/bucket"
)

func TestNothingIsLogged(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	was := os.Stderr
	os.Stderr = file
	defer func() { os.Stderr = was }()
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Length", "10") })
	_, err = s.Put(t.Context(), ref, bucket.Object{Body: strings.NewReader("x"), Size: 1}, bucket.Condition{})
	said, readErr := os.ReadFile(file.Name())
	if readErr != nil || len(said) > 0 {
		t.Errorf("standard error has %q, %v; Put returned %v", said, readErr, err)
	}
}
