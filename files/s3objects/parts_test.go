package s3objects_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl/files"
	"github.com/pawlhq/pawl/files/s3objects"
	"github.com/pawlhq/pawl/proof/servertest"
	"github.com/pawlhq/pawl/store/memory"
)

const partSize = 5 << 20

func pieces() []string {
	return []string{strings.Repeat("a", partSize), strings.Repeat("b", partSize), "the end"}
}

func promiseOf(parts []string) (files.Promise, [][32]byte) {
	p := files.Promise{ContentType: "text/plain", PartSize: partSize}
	var sums [][32]byte
	for _, part := range parts {
		p.Size += int64(len(part))
		sums = append(sums, sha256.Sum256([]byte(part)))
	}
	p.SHA256 = files.CompositeSHA256(sums)
	return p, sums
}

type multipartTest struct {
	t *testing.T
	files.Service
	bucket *s3objects.Bucket
	name   string
}

func newMultipartTest(t *testing.T, srv *servertest.Server) *multipartTest {
	name := srv.NewBucket(t)
	b := s3objects.New(srv.Client(), name, "").AcceptForgeable()
	return &multipartTest{t, files.Service{Index: files.NewIndex(memory.New()), Objects: b, Times: files.DefaultTimes(), Prefix: "files/"}, b, name}
}

func (x *multipartTest) begin(key string) (files.File, []files.SignedRequest) {
	x.t.Helper()
	p, sums := promiseOf(pieces())
	f, signed, err := x.UploadParts(x.t.Context(), "e", key, p, sums)
	if err != nil {
		x.t.Fatal(err)
	}
	return f, signed
}

func (x *multipartTest) send(signed []files.SignedRequest, numbers ...int) {
	x.t.Helper()
	for _, n := range numbers {
		if status, answer := send(x.t, signed[n], pieces()[n], nil); status != http.StatusOK {
			x.t.Fatalf("part %d: %d %s", n, status, answer)
		}
	}
}

func (x *multipartTest) wantState(want files.State, f files.File, err error) {
	x.t.Helper()
	if err != nil || f.State != want {
		x.t.Errorf("%s, %v: want it %s", f.State, err, want)
	}
}

func (x *multipartTest) wantOpenUploads(want int) {
	x.t.Helper()
	n := 0
	for _, err := range x.bucket.Uploads(x.t.Context(), x.Prefix) {
		if err != nil {
			x.t.Fatal(err)
		}
		n++
	}
	if n != want {
		x.t.Errorf("%d uploads are open: want %d", n, want)
	}
}

func (x *multipartTest) expireDeadlines(id string) {
	x.t.Helper()
	f, err := x.Get(x.t.Context(), id)
	if err != nil {
		x.t.Fatal(err)
	}
	c := files.Change{From: &f, Next: f}
	c.Next.LandBy = time.Now().Add(-time.Minute)
	c.Next.DueAt = c.Next.LandBy
	if _, err := x.Index.Apply(x.t.Context(), c); err != nil {
		x.t.Fatal(err)
	}
}

func (x *multipartTest) sweep(id string, want files.State) {
	x.t.Helper()
	if _, err := (&files.Sweeper{Service: &x.Service}).Round(x.t.Context()); err != nil {
		x.t.Fatal(err)
	}
	f, err := x.Get(x.t.Context(), id)
	x.wantState(want, f, err)
}

func TestMultipartLifecycle(t *testing.T) {
	servertest.Each(t, servertest.Options{}, func(t *testing.T, srv *servertest.Server) {
		x := newMultipartTest(t, srv)
		f, signed := x.begin("key")
		x.send(signed, 2, 0)
		got, err := x.Complete(t.Context(), f.ID)
		x.wantState(files.Pending, got, err)
		again, signed := x.begin("key")
		if again.ID != f.ID || again.UploadID != f.UploadID || again.PutBy != f.PutBy {
			t.Errorf("the first request began the upload %+v, and its repetition %+v", f, again)
		}
		x.wantOpenUploads(1)
		x.send(signed, 1, 1)
		for range 2 {
			got, err = x.Complete(t.Context(), f.ID)
			x.wantState(files.Indexed, got, err)
		}
		x.wantOpenUploads(0)
		if err := x.Objects.Complete(t.Context(), &f); err != nil {
			t.Errorf("completed once more: %v", err)
		}
		url, err := x.bucket.SignGet(t.Context(), &f, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if fetch(t, url) != strings.Join(pieces(), "") {
			t.Error("downloaded something else")
		}
		if _, signed := x.begin("key"); signed != nil {
			t.Error("an existing file can be uploaded again")
		}
		x.expireDeadlines(f.ID)
		x.sweep(f.ID, files.Indexed)
		if n, err := (&files.Sweeper{Service: &x.Service}).Round(t.Context()); n != 0 || err != nil {
			t.Errorf("reconciled %d times, %v", n, err)
		}
		got, err = x.Delete(t.Context(), f.ID)
		x.wantState(files.Deleted, got, err)
		got, err = x.Undelete(t.Context(), f.ID)
		x.wantState(files.Indexed, got, err)
	})
}

func TestExpiredMultipartUploadIsAborted(t *testing.T) {
	servertest.Each(t, servertest.Options{}, func(t *testing.T, srv *servertest.Server) {
		x := newMultipartTest(t, srv)
		f, signed := x.begin("")
		x.send(signed, 0, 1, 2)
		x.expireDeadlines(f.ID)
		x.sweep(f.ID, files.Expired)
		x.wantOpenUploads(0)
		got, err := x.Complete(t.Context(), f.ID)
		x.wantState(files.Expired, got, err)
		if err := x.Objects.Complete(t.Context(), &f); err != nil {
			t.Error(err)
		}
		if seen, err := x.bucket.Stat(t.Context(), f.Key); err != nil || seen.Found {
			t.Errorf("%+v, %v: want nothing there", seen, err)
		}
		if status, _ := send(t, signed[0], pieces()[0], nil); status == http.StatusOK {
			t.Error("the store accepted a part")
		}
		f, _ = x.begin("")
		got, err = x.Delete(t.Context(), f.ID)
		x.wantState(files.Deleted, got, err)
		x.expireDeadlines(f.ID)
		x.Now = func() time.Time { return time.Now().Add(25 * time.Hour) }
		x.sweep(f.ID, files.Purging)
		x.sweep(f.ID, files.Gone)
		x.wantOpenUploads(0)
	})
}

// crashingObjects crashes before the store creates a multipart upload, or before the row gets the
// upload's ID.
type crashingObjects struct {
	files.Objects
	begun bool
}

var errDied = errors.New("the service died")

func (d crashingObjects) Begin(ctx context.Context, f *files.File) (string, error) {
	if d.begun {
		_, _ = d.Objects.Begin(ctx, f)
	}
	return "", errDied
}

func TestCrashedMultipartStartIsCleanedUp(t *testing.T) {
	servertest.Each(t, servertest.Options{}, func(t *testing.T, srv *servertest.Server) {
		for _, begun := range []bool{false, true} {
			x := newMultipartTest(t, srv)
			x.Objects = crashingObjects{x.bucket, begun}
			p, sums := promiseOf(pieces())
			if _, _, err := x.UploadParts(t.Context(), "e", "key", p, sums); !errors.Is(err, errDied) {
				t.Fatal(err)
			}
			x.Objects = x.bucket
			left := map[bool]int{true: 1}[begun]
			x.wantOpenUploads(left)
			f, signed := x.begin("key")
			x.wantOpenUploads(1 + left)
			x.send(signed, 0, 1, 2)
			got, err := x.Complete(t.Context(), f.ID)
			x.wantState(files.Indexed, got, err)
			x.wantOpenUploads(left)
			x.expireDeadlines(f.ID)
			x.sweep(f.ID, files.Indexed)
			x.wantOpenUploads(0)
		}
	})
}

// docs/FILES.md has the table of TestStoreRejectsOtherParts.
func TestStoreRejectsOtherParts(t *testing.T) {
	servertest.Each(t, servertest.Options{}, func(t *testing.T, srv *servertest.Server) {
		x := newMultipartTest(t, srv)
		f, signed := x.begin("")
		part := pieces()[2]
		for name, test := range map[string]struct {
			minio, versitygw int // expected status
			body             string
			change           func(*http.Request)
		}{
			"longer":      {403, 403, part + "!", nil},
			"shorter":     {403, 403, part[1:], nil},
			"other bytes": {400, 400, strings.ToUpper(part), nil},
			"no length":   {411, 403, part, func(r *http.Request) { r.ContentLength, r.Body = -1, io.NopCloser(bytes.NewReader([]byte(part))) }},
			"no sum":      {400, 403, strings.ToUpper(part), func(r *http.Request) { r.Header.Del("X-Amz-Checksum-Sha256") }},
			"copy source": {403, 403, part, setHeader("X-Amz-Copy-Source", copySource(t, x.bucket, x.name))},
			"other part": {403, 403, part, func(r *http.Request) {
				r.URL.RawQuery = strings.Replace(r.URL.RawQuery, "partNumber=3", "partNumber=1", 1)
			}},
		} {
			t.Run(name, func(t *testing.T) {
				status, answer := send(t, signed[2], test.body, test.change)
				if want := map[string]int{"minio": test.minio, "versitygw": test.versitygw}[srv.Name]; status != want {
					t.Errorf("%d %s, want %d", status, answer, want)
				}
			})
		}
		x.send(signed, 0, 1)
		got, err := x.Complete(t.Context(), f.ID)
		x.wantState(files.Pending, got, err)
	})
}

func TestStoreWithoutCompositeSHA256(t *testing.T) {
	servertest.Each(t, servertest.Options{}, func(t *testing.T, srv *servertest.Server) {
		const says = "the store keeps no SHA-256 of multipart uploads"
		without := func(header, value string) *multipartTest { // removes the header if it contains value
			x := newMultipartTest(t, srv)
			x.bucket = s3objects.New(proxied(t, srv, nil, func(r *http.Response) error {
				if strings.Contains(r.Header.Get(header), value) {
					r.Header.Del(header)
				}
				return nil
			}), srv.NewBucket(t), srv.Endpoint).AcceptForgeable()
			x.Objects = x.bucket
			return x
		}
		p, sums := promiseOf(pieces())
		if _, _, err := without("X-Amz-Checksum-Algorithm", "").UploadParts(t.Context(), "e", "", p, sums); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("begun: %v", err)
		}
		x := without("X-Amz-Checksum-Sha256", "-")
		f, signed := x.begin("")
		x.send(signed, 0, 1, 2)
		if _, err := x.Complete(t.Context(), f.ID); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("completed: %v", err)
		}
	})
}

// If a completion stopped with its request, MinIO would lose the parts.
func TestCompletionOutlivesItsRequest(t *testing.T) {
	servertest.Each(t, servertest.Options{}, func(t *testing.T, srv *servertest.Server) {
		x := newMultipartTest(t, srv)
		f, signed := x.begin("")
		x.send(signed, 0, 1, 2)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := x.bucket.Complete(ctx, &f); err != nil {
			t.Error(err)
		}
		f, err := x.Reconcile(t.Context(), f.ID, false)
		x.wantState(files.Indexed, f, err)
	})
}
