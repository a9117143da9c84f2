package s3objects_test

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/pawlhq/pawl/files"
	"github.com/pawlhq/pawl/files/s3objects"
	"github.com/pawlhq/pawl/proof/servertest"
)

func wantEmptyBucket(t *testing.T, srv *servertest.Server, name string) {
	t.Helper()
	out, err := srv.Client().ListObjectsV2(t.Context(), &s3.ListObjectsV2Input{Bucket: &name})
	if err != nil || len(out.Contents) > 0 {
		t.Errorf("left %d objects, %v", len(out.Contents), err)
	}
	if srv.Name != "minio" {
		return
	}
	versions, err := srv.Client().ListObjectVersions(t.Context(), &s3.ListObjectVersionsInput{Bucket: &name})
	if err != nil || len(versions.Versions)+len(versions.DeleteMarkers) > 0 {
		t.Errorf("left %d versions and %d removals, %v", len(versions.Versions), len(versions.DeleteMarkers), err)
	}
}

func TestProbe(t *testing.T) {
	servertest.Each(t, servertest.Options{}, func(t *testing.T, srv *servertest.Server) {
		name := srv.NewBucket(t)
		b := s3objects.New(srv.Client(), name, "").AcceptForgeable()
		warnings, err := b.Probe(t.Context(), "files/")
		var want []error
		if srv.Name == "minio" {
			want = []error{s3objects.ErrForgeable, s3objects.ErrReplicationHeaders}
		}
		if err != nil || !slices.Equal(warnings, want) {
			t.Fatalf("%v, warnings: %v", err, warnings)
		}
		wantEmptyBucket(t, srv, name)
		f := files.File{ID: "a", Entity: "e", Key: "files/a", Promise: promise(text)}
		signed, err := b.Sign(t.Context(), &f, time.Now().Add(time.Minute))
		if pinned := strings.Contains(signed.URL, "x-amz-copy-source="); err != nil || pinned != (srv.Name == "minio") {
			t.Errorf("pinned: %v, %v", pinned, err)
		}
	})
}

// listing lists a bucket after each upload, as another program may do.
type listing struct {
	s3.HTTPClient
	list func() error
	seen int
}

func (l *listing) Do(r *http.Request) (*http.Response, error) {
	resp, err := l.HTTPClient.Do(r)
	if err == nil && r.Method == http.MethodPut {
		l.seen++
		err = l.list()
	}
	return resp, err
}

// A killed probe must leave no object that breaks listings.
func TestListingDuringProbe(t *testing.T) {
	srv := servertest.MinIO(t, servertest.Options{})
	name := srv.NewBucket(t)
	other := srv.Client()
	beside := &listing{HTTPClient: other.Options().HTTPClient, list: func() error {
		_, err := other.ListObjectsV2(t.Context(), &s3.ListObjectsV2Input{Bucket: &name})
		return err
	}}
	client := s3.New(other.Options(), func(o *s3.Options) { o.HTTPClient = beside })
	warnings, err := s3objects.New(client, name, "").AcceptForgeable().Probe(t.Context(), "files/")
	if err != nil || !slices.Contains(warnings, s3objects.ErrReplicationHeaders) || beside.seen < 5 {
		t.Errorf("%v, warnings: %v, %d uploads", err, warnings, beside.seen)
	}
	wantEmptyBucket(t, srv, name)
}

func TestForgeableStoreIsRefused(t *testing.T) {
	srv := servertest.MinIO(t, servertest.Options{})
	name := srv.NewBucket(t)
	b := s3objects.New(srv.Client(), name, "")
	f := files.File{ID: "a", Entity: "e", Key: "files/a", UploadID: "u", Promise: promise(text)}
	until := time.Now().Add(time.Minute)
	for what, do := range map[string]func() error{
		"Prove":    func() error { _, err := b.Probe(t.Context(), "files/"); return err },
		"Sign":     func() error { _, err := b.Sign(t.Context(), &f, until); return err },
		"SignPart": func() error { _, err := b.SignPart(t.Context(), &f, 1, f.SHA256, until); return err },
		"SignGet":  func() error { _, err := b.SignGet(t.Context(), &f, time.Minute); return err },
		"Begin":    func() error { _, err := b.Begin(t.Context(), &f); return err },
		"Put":      func() error { return b.Put(t.Context(), &f, strings.NewReader(text)) },
	} {
		if err := do(); !errors.Is(err, s3objects.ErrForgeable) || !errors.Is(err, s3objects.ErrUnsuitable) {
			t.Errorf("%s: %v", what, err)
		}
	}
	wantEmptyBucket(t, srv, name)
}

// A failed request with a forged signature does not count as a rejection.
func TestForgeryWithoutAnswer(t *testing.T) {
	srv := servertest.MinIO(t, servertest.Options{})
	name := srv.NewBucket(t)
	var down atomic.Bool
	down.Store(true)
	b := s3objects.New(proxied(t, srv, func(w http.ResponseWriter, r *http.Request) bool {
		silent := down.Load() && r.Header.Get("X-Amz-Trailer") != ""
		if silent {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		return silent
	}, nil), name, "")
	if _, err := b.Probe(t.Context(), "files/"); err == nil || errors.Is(err, s3objects.ErrUnsuitable) {
		t.Errorf("without an answer: %v", err)
	}
	down.Store(false)
	if _, err := b.Probe(t.Context(), "files/"); !errors.Is(err, s3objects.ErrForgeable) {
		t.Errorf("with an answer: %v", err)
	}
	wantEmptyBucket(t, srv, name)
}

func TestProbeRemovesLeftovers(t *testing.T) {
	srv := servertest.MinIO(t, servertest.Options{})
	name := srv.NewBucket(t)
	for key, age := range map[string]time.Duration{"files/.pawl-doctor/old/1": 2 * time.Hour, "files/.pawl-doctor/new/1": time.Minute, "files/notes.txt": 2 * time.Hour} {
		written := s3.WithAPIOptions(smithyhttp.SetHeaderValue("X-Minio-Source-Mtime", time.Now().Add(-age).Format(time.RFC3339Nano)))
		if _, err := srv.Client().PutObject(t.Context(), &s3.PutObjectInput{Bucket: &name, Key: &key, Body: strings.NewReader(text)}, written); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s3objects.New(srv.Client(), name, "").AcceptForgeable().Probe(t.Context(), "files/"); err != nil {
		t.Fatal(err)
	}
	out, err := srv.Client().ListObjectsV2(t.Context(), &s3.ListObjectsV2Input{Bucket: &name})
	if err != nil || len(out.Contents) != 2 || *out.Contents[0].Key != "files/.pawl-doctor/new/1" || *out.Contents[1].Key != "files/notes.txt" {
		t.Errorf("left %d objects, %v", len(out.Contents), err)
	}
}

func TestUnsuitableStores(t *testing.T) {
	srv := servertest.MinIO(t, servertest.Options{})
	answers := func(status int, when func(*http.Request) bool) func(*http.Response) error {
		return func(r *http.Response) error {
			if r.Request.Method == http.MethodPut && r.StatusCode == status && when(r.Request) {
				r.StatusCode, r.Status = http.StatusOK, "200 OK"
			}
			return nil
		}
	}
	any := func(*http.Request) bool { return true }
	for want, test := range map[string]struct {
		versions bool
		change   func(*http.Response) error
	}{
		"HEAD does not show": {change: func(r *http.Response) error { r.Header.Del("X-Amz-Checksum-Sha256"); return nil }},
		"keeps versions":     {versions: true},
		"a second PUT":       {change: answers(http.StatusPreconditionFailed, any)},
		"other bytes":        {change: answers(http.StatusBadRequest, any)},
		"a copy source":      {change: answers(http.StatusForbidden, func(r *http.Request) bool { return r.Header.Get("X-Amz-Copy-Source") != "" })},
		"status 403": {change: func(r *http.Response) error {
			if r.Request.Method == http.MethodPut {
				r.StatusCode = http.StatusForbidden
			}
			return nil
		}},
	} {
		t.Run(want, func(t *testing.T) {
			name := srv.NewBucket(t)
			if test.versions {
				_, err := srv.Client().PutBucketVersioning(t.Context(), &s3.PutBucketVersioningInput{
					Bucket: &name, VersioningConfiguration: &types.VersioningConfiguration{Status: types.BucketVersioningStatusEnabled},
				})
				if err != nil {
					t.Fatal(err)
				}
			}
			b := s3objects.New(proxied(t, srv, nil, test.change), name, "").AcceptForgeable()
			_, err := b.Probe(t.Context(), "files/")
			if !errors.Is(err, s3objects.ErrUnsuitable) || !strings.Contains(err.Error(), want) {
				t.Errorf("%v: want %q", err, want)
			}
			wantEmptyBucket(t, srv, name)
			f := files.File{ID: "a", Entity: "e", Key: "files/a", Promise: promise(text)}
			if _, err := b.Sign(t.Context(), &f, time.Now().Add(time.Minute)); !errors.Is(err, s3objects.ErrUnsuitable) {
				t.Errorf("an upload was signed: %v", err)
			}
		})
	}
}

func TestStatOnUnsuitableStore(t *testing.T) {
	srv := servertest.MinIO(t, servertest.Options{})
	name := srv.NewBucket(t)
	f := files.File{ID: "a", Entity: "e", Key: "files/a", Promise: promise(text)}
	if _, err := srv.Client().PutObject(t.Context(), &s3.PutObjectInput{Bucket: &name, Key: &f.Key, Body: strings.NewReader(text)}); err != nil {
		t.Fatal(err)
	}
	reads := proxied(t, srv, func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodHead {
			t.Errorf("an audit that must not write sends %s %s", r.Method, r.URL.Path)
		}
		return false
	}, nil)
	if seen, err := s3objects.New(reads, name, "").AcceptForgeable().Stat(t.Context(), f.Key); err == nil || seen.Found {
		t.Errorf("%+v, %v", seen, err)
	}
	fit := s3objects.New(srv.Client(), name, "").AcceptForgeable()
	fit.AllowProbe("files/")
	if seen, err := fit.Stat(t.Context(), f.Key); err != nil || !seen.Found {
		t.Errorf("%+v, %v", seen, err)
	}
	bare := proxied(t, srv, nil, func(r *http.Response) error { r.Header.Del("X-Amz-Checksum-Sha256"); return nil })
	unfit := s3objects.New(bare, name, "").AcceptForgeable()
	unfit.AllowProbe("files/")
	if seen, err := unfit.Stat(t.Context(), f.Key); !errors.Is(err, s3objects.ErrUnsuitable) {
		t.Errorf("%+v, %v", seen, err)
	}
}

func TestProbeAfterOutage(t *testing.T) {
	srv := servertest.MinIO(t, servertest.Options{})
	name := srv.NewBucket(t)
	var down atomic.Bool
	down.Store(true)
	b := s3objects.New(proxied(t, srv, func(w http.ResponseWriter, _ *http.Request) bool {
		if down.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		return down.Load()
	}, nil), name, "").AcceptForgeable()
	if _, err := b.Probe(t.Context(), "files/"); err == nil || errors.Is(err, s3objects.ErrUnsuitable) {
		t.Error(err)
	}
	down.Store(false)
	f := files.File{ID: "a", Entity: "e", Key: "files/a", Promise: promise(text)}
	signed, err := b.Sign(t.Context(), &f, time.Now().Add(time.Minute))
	if err != nil || !strings.Contains(signed.URL, "x-amz-copy-source=") {
		t.Errorf("%s, %v", signed.URL, err)
	}
	wantEmptyBucket(t, srv, name)
}

func TestStoreWithoutMultipart(t *testing.T) {
	srv := servertest.MinIO(t, servertest.Options{})
	b := s3objects.New(proxied(t, srv, func(w http.ResponseWriter, r *http.Request) bool {
		denied := r.Method == http.MethodGet && r.URL.Query().Has("uploadId")
		if denied {
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, "<Error><Code>AccessDenied</Code></Error>") // otherwise the test fails
		}
		return denied
	}, nil), srv.NewBucket(t), "").AcceptForgeable()
	warnings, err := b.Probe(t.Context(), "files/")
	if err != nil || len(warnings) != 3 || !strings.Contains(warnings[2].Error(), "multipart uploads are not possible") {
		t.Errorf("%v, %v", warnings, err)
	}
	f := files.File{ID: "a", Entity: "e", Key: "files/a", Promise: promise(text)}
	if _, err := b.Sign(t.Context(), &f, time.Now().Add(time.Minute)); err != nil {
		t.Error(err)
	}
	if id, err := b.Begin(t.Context(), &f); err == nil {
		t.Errorf("the upload %s has begun", id)
	}
}
