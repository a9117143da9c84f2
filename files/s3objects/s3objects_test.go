package s3objects_test

import (
	"bytes"
	"crypto/sha256"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/pawlhq/pawl/files"
	"github.com/pawlhq/pawl/files/s3objects"
	"github.com/pawlhq/pawl/proof/servertest"
	"github.com/pawlhq/pawl/store/memory"
)

const text = "these are the bytes"

func promise(body string) files.Promise {
	return files.Promise{Size: int64(len(body)), ContentType: "text/plain", SHA256: sha256.Sum256([]byte(body))}
}

func send(t *testing.T, s files.SignedRequest, body string, change func(*http.Request)) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), s.Method, s.URL, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range s.Headers {
		if name != "Content-Length" { // set by net/http
			r.Header.Set(name, value)
		}
	}
	if change != nil {
		change(r)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err.Error() // the connection was closed
	}
	defer func() { _ = resp.Body.Close() }()
	answer, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(answer)
}

func copySource(t *testing.T, b *s3objects.Bucket, bucket string) string {
	t.Helper()
	f := files.File{ID: "secret", Entity: "other", Key: "files/secret", Promise: promise(text)}
	if err := b.Put(t.Context(), &f, strings.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	return "/" + bucket + "/" + f.Key
}

func setHeader(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(name, value) }
}

// docs/FILES.md has the table of TestStoreRejectsOtherUploads.
func TestStoreRejectsOtherUploads(t *testing.T) {
	servertest.Each(t, servertest.Options{}, func(t *testing.T, srv *servertest.Server) {
		bucket := srv.NewBucket(t)
		b := s3objects.New(srv.Client(), bucket, "").AcceptForgeable()
		other := copySource(t, b, bucket)
		for name, test := range map[string]struct {
			minio, versitygw int // expected status
			body             string
			change           func(*http.Request)
		}{
			"longer":       {403, 403, text + "!", nil},
			"shorter":      {403, 403, text[1:], nil},
			"other bytes":  {400, 400, strings.ToUpper(text), nil},
			"other type":   {403, 403, text, func(r *http.Request) { r.Header.Set("Content-Type", "text/html") }},
			"other entity": {403, 403, text, func(r *http.Request) { r.Header.Set("X-Amz-Meta-Entity", "someone else") }},
			"no condition": {400, 403, text, func(r *http.Request) { r.Header.Del("If-None-Match") }},
			"no length":    {411, 403, text, func(r *http.Request) { r.ContentLength, r.Body = -1, io.NopCloser(strings.NewReader(text)) }},
			"copy source":  {403, 403, text, setHeader("X-Amz-Copy-Source", other)},
			"customer key": {400, 403, text, setHeader("X-Amz-Server-Side-Encryption-Customer-Algorithm", "AES256")},
			"tags":         {403, 403, text, setHeader("X-Amz-Tagging", "a=b")},
			"public":       {403, 403, text, setHeader("X-Amz-Acl", "public-read")},
			"storage":      {403, 403, text, setHeader("X-Amz-Storage-Class", "REDUCED_REDUNDANCY")},
			"redirect":     {403, 403, text, setHeader("X-Amz-Website-Redirect-Location", "https://example.org")},
			"legal hold":   {403, 403, text, setHeader("X-Amz-Object-Lock-Legal-Hold", "ON")},
			"encoding":     {403, 200, text, setHeader("Content-Encoding", "gzip")},
			"caching":      {200, 200, text, setHeader("Cache-Control", "public")},
			"metadata":     {400, 403, text, setHeader("X-Amz-Meta-More", "more")},
			"no sum":       {400, 403, strings.ToUpper(text), func(r *http.Request) { r.Header.Del("X-Amz-Checksum-Sha256") }},
		} {
			t.Run(name, func(t *testing.T) {
				f := files.File{ID: "a", Entity: "e", Key: "files/" + name, Promise: promise(text)}
				signed, err := b.Sign(t.Context(), &f, time.Now().Add(time.Minute))
				if err != nil {
					t.Fatal(err)
				}
				status, answer := send(t, signed, test.body, test.change)
				want := map[string]int{"minio": test.minio, "versitygw": test.versitygw}[srv.Name]
				if status != want {
					t.Errorf("%d %s, want %d", status, answer, want)
				}
				if seen, err := b.Stat(t.Context(), f.Key); err != nil || seen.Found != (want == http.StatusOK) {
					t.Errorf("%+v, %v: want nothing there that was refused", seen, err)
				}
			})
		}
	})
}

// If answer returns true, it has sent the response, and the proxy does not call the store.
func proxied(t *testing.T, srv *servertest.Server, answer func(http.ResponseWriter, *http.Request) bool, change func(*http.Response) error) *s3.Client {
	t.Helper()
	store, err := url.Parse(srv.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	relay := httputil.NewSingleHostReverseProxy(store)
	relay.ModifyResponse = change
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if answer == nil || !answer(w, r) {
			relay.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(proxy.Close)
	return s3.New(srv.Client().Options(), func(o *s3.Options) { o.BaseEndpoint = &proxy.URL })
}

// Otherwise files would expire while a proxy cannot reach the store.
func TestStatIgnoresProxy404(t *testing.T) {
	servertest.Each(t, servertest.Options{}, func(t *testing.T, srv *servertest.Server) {
		name := srv.NewBucket(t)
		f := files.File{ID: "a", Entity: "e", Key: "files/a", Promise: promise(text)}
		if err := s3objects.New(srv.Client(), name, "").AcceptForgeable().Put(t.Context(), &f, strings.NewReader(text)); err != nil {
			t.Fatal(err)
		}
		var away atomic.Bool
		gateway := func(w http.ResponseWriter, _ *http.Request) bool {
			if away.Load() {
				http.Error(w, "default backend - 404", http.StatusNotFound)
			}
			return away.Load()
		}
		late := func(w http.ResponseWriter, r *http.Request) bool { // the object appears after HEAD
			if first := r.Method == http.MethodHead && away.Swap(false); !first {
				return false
			}
			w.WriteHeader(http.StatusNotFound)
			return true
		}
		statAfter := func(what string, b *s3objects.Bucket, leave func()) (files.ObjectInfo, error) {
			t.Helper()
			if _, err := b.Probe(t.Context(), "files/"); err != nil {
				t.Fatal(what, err)
			}
			leave()
			return b.Stat(t.Context(), f.Key)
		}
		leave := func() { away.Store(true) }
		if seen, err := statAfter("late", s3objects.New(proxied(t, srv, late, nil), name, "").AcceptForgeable(), leave); err != nil || !seen.Found {
			t.Errorf("%+v, %v: want what came", seen, err)
		}
		if seen, err := statAfter("gateway", s3objects.New(proxied(t, srv, gateway, nil), name, "").AcceptForgeable(), leave); err == nil {
			t.Errorf("a gateway without a store is believed: %+v", seen)
		}
		gone := srv.NewBucket(t)
		remove := func() {
			if _, err := srv.Client().DeleteBucket(t.Context(), &s3.DeleteBucketInput{Bucket: &gone}); err != nil {
				t.Fatal(err)
			}
		}
		if seen, err := statAfter("bucket", s3objects.New(srv.Client(), gone, "").AcceptForgeable(), remove); err == nil {
			t.Errorf("an object is absent where there is no bucket: %+v", seen)
		}
	})
}

func TestServiceLifecycle(t *testing.T) {
	servertest.Each(t, servertest.Options{}, func(t *testing.T, srv *servertest.Server) {
		b := s3objects.New(srv.Client(), srv.NewBucket(t), "").AcceptForgeable()
		times := files.DefaultTimes()
		s := files.Service{Index: files.NewIndex(memory.New()), Objects: b, Times: times, Prefix: "files/"}
		f, signed, err := s.Upload(t.Context(), "e", "", promise(text))
		if err != nil {
			t.Fatal(err)
		}
		state := func(want files.State, f files.File, err error) {
			t.Helper()
			if err != nil || f.State != want {
				t.Errorf("%s, %v: want it %s", f.State, err, want)
			}
		}
		f, err = s.Reconcile(t.Context(), f.ID, true)
		state(files.Pending, f, err)
		if status, answer := send(t, signed, text, nil); status != http.StatusOK {
			t.Fatalf("%d %s", status, answer)
		}
		if status, _ := send(t, signed, text, nil); status != http.StatusPreconditionFailed {
			t.Errorf("a second upload: %d", status)
		}
		f, err = s.Reconcile(t.Context(), f.ID, true)
		state(files.Indexed, f, err)
		url, err := b.SignGet(t.Context(), &f, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if got := fetch(t, url); got != text {
			t.Errorf("downloaded %q", got)
		}
		f, err = s.Delete(t.Context(), f.ID)
		state(files.Deleted, f, err)
		f, err = s.Undelete(t.Context(), f.ID)
		state(files.Indexed, f, err)
		f, err = s.UploadBytes(t.Context(), "e", "", promise("more"), bytes.NewReader([]byte("more")))
		state(files.Indexed, f, err)
		_, err = s.UploadBytes(t.Context(), "e", "", promise("more"), bytes.NewReader([]byte("less")))
		if err == nil {
			t.Error("other bytes than promised were stored")
		}
		if err := b.Remove(t.Context(), f.Key); err != nil {
			t.Error(err)
		}
		f, err = s.Reconcile(t.Context(), f.ID, true)
		state(files.Lost, f, err)
	})
}

func fetch(t *testing.T, url string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
