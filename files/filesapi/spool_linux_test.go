package filesapi_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"

	"github.com/pawlhq/pawl/proof/servertest"
)

// spoolDisk is the environment variable with the folder on a small disk.
const spoolDisk = "PAWL_TEST_SPOOL"

func TestSpoolOnFullDisk(t *testing.T) {
	dir := os.Getenv(spoolDisk)
	if dir == "" { // run this test again, with a disk of 3 MiB
		dir = t.TempDir()
		cmd := servertest.OnDisk(t.Context(), t, dir, "3m", os.Args[0], "-test.run=^TestSpoolOnFullDisk$")
		cmd.Env = append(os.Environ(), spoolDisk+"="+dir)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
		return
	}
	post := spoolAPI(t, dir)
	body, send := io.Pipe()
	first := make(chan *httptest.ResponseRecorder, 1)
	go func() { first <- post("ann", body) }()
	if _, err := send.Write(make([]byte, 2<<20)); err != nil { // fills two thirds of the disk
		t.Error(err)
	}
	if got := post("bob", bytes.NewReader(make([]byte, 2<<20))); got.Code != http.StatusInsufficientStorage || got.Header().Get("Retry-After") == "" {
		t.Errorf("%d %s", got.Code, got.Body)
	}
	if err := send.Close(); err != nil {
		t.Error(err)
	}
	if got := <-first; got.Code != http.StatusCreated {
		t.Errorf("the body that was there before: %d %s", got.Code, got.Body)
	}
	if got := post("bob", bytes.NewReader(make([]byte, 2<<20))); got.Code != http.StatusCreated {
		t.Errorf("afterwards: %d %s", got.Code, got.Body)
	}
}
