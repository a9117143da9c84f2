package filesapi_test

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"github.com/pawlhq/pawl/internal/servertest"
)

// spoolDisk is the variable that names the folder of a small disk.
const spoolDisk = "PAWL_TEST_SPOOL"

// TestSpoolOnFullDisk: a body for which the disk has no space left is answered with 507,
// and passes when there is space.
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
	ctx, end := context.WithTimeout(t.Context(), time.Minute)
	defer end()
	sent, first := &endless{ctx, 2 << 20}, make(chan *httptest.ResponseRecorder, 1)
	go func() { first <- post("ann", sent) }()
	for full := false; !full; { // the first body has filled two thirds
		got := post("bob", bytes.NewReader(make([]byte, 2<<20)))
		if full = got.Code == http.StatusInsufficientStorage; full && got.Header().Get("Retry-After") == "" {
			t.Errorf("%d %s", got.Code, got.Body)
		}
		if !full && got.Code != http.StatusCreated || ctx.Err() != nil {
			t.Fatalf("%d %s", got.Code, got.Body)
		}
	}
	end()
	<-first
	if got := post("bob", bytes.NewReader(make([]byte, 2<<20))); got.Code != http.StatusCreated {
		t.Errorf("afterwards: %d %s", got.Code, got.Body)
	}
}
