package s3objects_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl/files"
	"github.com/pawlhq/pawl/files/s3objects"
	"github.com/pawlhq/pawl/proof/servertest"
)

func TestDownloadsAreAttachments(t *testing.T) {
	servertest.Each(t, servertest.Options{}, func(t *testing.T, srv *servertest.Server) {
		b := s3objects.New(srv.Client(), srv.NewBucket(t), "").AcceptForgeable()
		download := func(contentType string) (disposition string) {
			t.Helper()
			f := files.File{ID: "f", Entity: "e", Key: "files/" + strings.ReplaceAll(contentType, "/", "-"), Promise: promise(text)}
			f.ContentType = contentType
			if err := b.Put(t.Context(), &f, strings.NewReader(text)); err != nil && !strings.Contains(err.Error(), "PreconditionFailed") {
				t.Fatal(err)
			}
			signed, err := b.SignGet(t.Context(), &f, time.Minute)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := http.Get(signed)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			if resp.StatusCode != http.StatusOK {
				t.Errorf("%s: %s", contentType, resp.Status)
			}
			return resp.Header.Get("Content-Disposition")
		}
		for contentType, want := range map[string]string{
			"text/html": "attachment", "image/svg+xml": "attachment", "image/png, text/html": "attachment", "IMAGE/PNG": "attachment",
			"image/png": "", "video/mp4": "", "audio/mpeg": "",
		} {
			if got := download(contentType); got != want {
				t.Errorf("%s: Content-Disposition %q: want %q", contentType, got, want)
			}
		}
		b.SetInlineTypes([]string{"text/plain"})
		for contentType, want := range map[string]string{"text/plain": "", "image/png": "attachment"} {
			if got := download(contentType); got != want {
				t.Errorf("inline_types: %s: Content-Disposition %q: want %q", contentType, got, want)
			}
		}
	})
}
