//go:build unix

package root_test

import (
	"io"
	"net/http"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/pawlhq/pawl/internal/fakes3"
)

// s3-unconditional BUCKET: starts an object store that ignores preconditions, at $S3.
func startCareless(ts *testscript.TestScript, _ bool, buckets []string) {
	below := fakes3.New()
	startHandler(ts, buckets, func(w http.ResponseWriter, r *http.Request) {
		r.Header.Del("If-Match")
		r.Header.Del("If-None-Match")
		below.ServeHTTP(w, r)
	})
}

// empty BUCKET: checks that the bucket is empty.
func empty(ts *testscript.TestScript, _ bool, args []string) {
	resp, err := http.Get(ts.Getenv("S3") + "/" + args[0])
	ts.Check(err)
	defer resp.Body.Close()
	listing, err := io.ReadAll(resp.Body)
	ts.Check(err)
	if resp.StatusCode != http.StatusOK || strings.Contains(string(listing), "<Key>") {
		ts.Fatalf("%s: %s %s", args[0], resp.Status, listing)
	}
}
