package filesapi_test

import (
	"net/http"
	"testing"
)

// TestDeleteAll: files are deleted in every state that holds bytes, or may. The
// bytes of one that was pending do not make it visible when they come.
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
	x.lists(ann)
	if used, err := x.files.Index.Used(t.Context(), "e"); err != nil || used != 0 {
		t.Errorf("%d bytes are used, %v", used, err)
	}
}
