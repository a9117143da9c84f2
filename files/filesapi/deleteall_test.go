package filesapi_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/pawlhq/pawl/files"
	"github.com/pawlhq/pawl/files/filesapi"
)

func TestDeleteAll(t *testing.T) {
	x := serve(t, nil)
	ann := token(t, "read:e write:e")
	pending := x.want(http.StatusCreated, ann, "POST", "/v1/uploads", uploadOf("e", "pending"))
	waits := pending["file"].(map[string]any)["fileId"].(string)
	_, stored := x.call(ann, "POST", "/v1/files?entity=e", "text/plain", []byte("indexed"))
	_, taken := x.call(ann, "POST", "/v1/files?entity=e", "text/plain", []byte("lost"))
	indexed, lost := stored["fileId"].(string), taken["fileId"].(string)
	if err := x.files.Objects.Remove(t.Context(), "files/"+lost); err != nil {
		t.Fatal(err)
	}
	if got := x.want(http.StatusOK, ann, "POST", "/v1/files/"+lost+"/complete", nil); got["state"] != "lost" {
		t.Errorf("%v: want it lost", got)
	}
	if got := x.want(http.StatusOK, ann, "DELETE", "/v1/entities/e/files", nil); got["deleted"] != 3.0 || got["more"] != false {
		t.Errorf("%v: want 3 deleted", got)
	}
	x.put(pending, "pending")
	for _, id := range []string{waits, indexed, lost} {
		x.want(http.StatusNotFound, ann, "POST", "/v1/files/"+id+"/complete", nil)
	}
	x.wantList(ann)
	if used, err := x.files.Index.Used(t.Context(), "e"); err != nil || used != (files.Usage{Bytes: 3 * files.MinCharge, Open: 1}) {
		t.Errorf("%+v, %v: want all three to count until they are purged", used, err)
	}
}

// A deleted upload still counts, because its URL may still be in use.
func TestOpenUploads(t *testing.T) {
	x := serve(t, func(c *filesapi.Config) {
		c.Files.Limit = func(string) files.Usage { return files.Usage{Bytes: 1 << 20, Open: 2} }
	})
	ann := token(t, "read:* write:*")
	begin := func(status int, body string) map[string]any {
		t.Helper()
		return x.want(status, ann, "POST", "/v1/uploads", uploadOf("e", body))
	}
	first, second := begin(http.StatusCreated, "first"), begin(http.StatusCreated, "second")
	if got := begin(http.StatusTooManyRequests, "third"); !strings.Contains(got["detail"].(string), "open uploads") {
		t.Error(got)
	}
	x.want(http.StatusOK, ann, "DELETE", "/v1/files/"+second["file"].(map[string]any)["fileId"].(string), nil)
	begin(http.StatusTooManyRequests, "third")
	x.put(first, "first")
	x.want(http.StatusOK, ann, "POST", "/v1/files/"+first["file"].(map[string]any)["fileId"].(string)+"/complete", nil)
	begin(http.StatusCreated, "third")
}
