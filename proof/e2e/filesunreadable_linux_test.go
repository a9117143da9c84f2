package e2e

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawlhq/pawl/proof/rig"
	"github.com/pawlhq/pawl/proof/servertest"
)

// With headers of MinIO's replication, a client stores objects that MinIO can neither read nor list. An
// audit skips them, and the service restarts.
func TestFilesUnreadableUploads(t *testing.T) {
	t.Parallel()
	var to atomic.Pointer[url.URL]
	front := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		if at := to.Load(); at != nil { // otherwise the request loops, and MinIO retries
			r.SetURL(at)
		}
	}})
	t.Cleanup(front.Close)
	server := servertest.MinIO(t, servertest.Options{Webhook: front.URL + "/events", Authorization: serveAuth})
	s := serve(t, server, filepath.Join(t.TempDir(), "files.db"))
	to.Store(&url.URL{Scheme: "http", Host: s.addresses()[0]})
	server.Notify(t, inputs)
	c := s.client(t)
	var broken, unlistable []string
	for _, header := range []string{"X-Minio-Replication-Encrypted-Multipart", "X-Minio-Replication-Server-Side-Encryption-Sealed-Key"} {
		for _, body := range []string{header, header[len(header)-5:]} { // MinIO lists the longer ones, with a wrong size
			signed := begin(t, c, "attacker", body)
			signed.Upload.Headers[header] = "1"
			if status, err := c.putOnce(t.Context(), signed.Upload, []byte(body)); err != nil || status != http.StatusOK {
				t.Fatalf("%d, %v: want MinIO to accept the upload", status, err)
			}
			broken = append(broken, signed.File.ID)
		}
		unlistable = append(unlistable, broken[len(broken)-1])
	}
	for n := range 5 {
		body := fmt.Sprint("file ", n)
		signed := begin(t, c, "victim", body)
		if status, err := c.putOnce(t.Context(), signed.Upload, []byte(body)); err != nil || status != http.StatusOK {
			t.Fatal(status, err)
		}
	}
	eventually(t, time.Minute, func(ctx context.Context) (hidden []string, err error) {
		all, err := c.List(ctx, "victim")
		if len(all) != 5 {
			hidden = []string{fmt.Sprintf("%d of 5 files of others are visible", len(all))}
		}
		return hidden, err
	})
	for _, id := range broken {
		if f, err := c.Want(t.Context(), http.StatusOK, http.MethodGet, "/v1/files/"+id, nil, nil); err != nil || f.State != "pending" {
			t.Errorf("%s, %v: want the file pending", f.State, err)
		}
	}
	s.stop(t)
	out, code := s.command(t, "files", "audit")
	for _, id := range unlistable {
		if code != 0 || !strings.Contains(out, "audited 9 objects and 9 rows") || !strings.Contains(out, "cannot list this object: remove it: s3://inputs/files/"+id) {
			t.Errorf("exit code %d:\n%s\nwant %s named", code, out, id)
		}
	}
	if err := s.slots[0].start(); err != nil {
		t.Fatal(err)
	}
	if _, err := c.List(t.Context(), "victim"); err != nil {
		t.Error(err)
	}
	s.stop(t)
	if n := s.count(t, "X-Minio-Replication-*"); n == 0 {
		t.Error("the service does not warn about the store")
	}
}

func begin(t *testing.T, c *filesClient, entity, body string) *rig.FileAnswer {
	t.Helper()
	signed, err := c.sign(t.Context(), entity, "key-"+strings.ReplaceAll(body, " ", "-"), []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	return signed
}
