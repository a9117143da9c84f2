package fakes3_test

import (
	"encoding/xml"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl/internal/fakes3"
	"github.com/pawlhq/pawl/internal/virtualtime"
)

type slowBody struct{ io.Reader }

func (b slowBody) Read(p []byte) (int, error) {
	time.Sleep(3 * time.Second) // virtual time of the bubble
	return b.Reader.Read(p)
}

func TestListingAndHeadReturnSameTime(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		h := fakes3.New()
		request := func(method, path string, body io.Reader, header ...string) *httptest.ResponseRecorder {
			t.Helper()
			r := httptest.NewRequest(method, "http://s3.test"+path, body)
			for i := 0; i < len(header); i += 2 {
				r.Header.Set(header[i], header[i+1])
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code != http.StatusOK {
				t.Fatalf("%s %s: %d %s", method, path, w.Code, w.Body)
			}
			return w
		}
		request(http.MethodPut, "/inputs", nil)
		request(http.MethodPut, "/inputs/put", slowBody{strings.NewReader("new")}, "Content-Length", "3")
		request(http.MethodPut, "/inputs/overwritten", strings.NewReader("old"), "Content-Length", "3")
		request(http.MethodPut, "/inputs/overwritten", slowBody{strings.NewReader("new")}, "Content-Length", "3")
		time.Sleep(time.Hour)
		request(http.MethodPut, "/inputs/copy", nil, "X-Amz-Copy-Source", "/inputs/put")

		var upload struct {
			UploadID string `xml:"UploadId"`
		}
		decode(t, request(http.MethodPost, "/inputs/parts?uploads", nil), &upload)
		part := request(http.MethodPut, "/inputs/parts?partNumber=1&uploadId="+upload.UploadID, strings.NewReader("new"), "Content-Length", "3")
		time.Sleep(time.Hour)
		request(http.MethodPost, "/inputs/parts?uploadId="+upload.UploadID, strings.NewReader(
			"<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>"+part.Header().Get("ETag")+"</ETag></Part></CompleteMultipartUpload>"))

		var list struct {
			Contents []struct {
				Key          string
				LastModified time.Time
			}
		}
		decode(t, request(http.MethodGet, "/inputs?list-type=2", nil), &list)
		if len(list.Contents) != 4 {
			t.Errorf("listed %d objects, want 4", len(list.Contents))
		}
		for _, o := range list.Contents {
			head := request(http.MethodHead, "/inputs/"+o.Key, nil).Header().Get("Last-Modified")
			if listed := o.LastModified.Format(http.TimeFormat); listed != head {
				t.Errorf("%s: listed as of %s, but HEAD returns %s", o.Key, listed, head)
			}
		}
	})
}

func decode(t *testing.T, w *httptest.ResponseRecorder, v any) {
	t.Helper()
	if err := xml.NewDecoder(w.Body).Decode(v); err != nil {
		t.Fatal(err)
	}
}
