package server

import (
	"context"
	"crypto/sha256"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/pawlhq/pawl/bucket/s3bucket"
	"github.com/pawlhq/pawl/files"
	"github.com/pawlhq/pawl/files/s3objects"
	"github.com/pawlhq/pawl/proof/servertest"
	"github.com/pawlhq/pawl/store/memory"
)

func TestProbeStore(t *testing.T) {
	srv := servertest.MinIO(t, servertest.Options{})
	name := srv.NewBucket(t)
	check := func(endpoint string, forgeable bool) error {
		store, err := s3bucket.New(t.Context(), s3bucket.Config{Endpoint: endpoint, PathStyle: true, AccessKey: srv.AccessKey, SecretKey: srv.SecretKey})
		if err != nil {
			t.Fatal(err)
		}
		s, err := New(Config{
			Index: memory.New(), Store: store, Bucket: name, Prefix: "files/", Secret: secret, AcceptForgeableUploads: forgeable, Logger: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Rebuild(t.Context(), files.RebuildOptions{}, false); err == nil || endpoint == srv.Endpoint && !errors.Is(err, s3objects.ErrForgeable) && !errors.Is(err, s3objects.ErrUnsuitable) {
			t.Errorf("a rebuild from metadata that may be forged: %v", err)
		}
		return s.probeStore(t.Context()) // a rebuild must not change which stores the server accepts
	}
	if err := check(srv.Endpoint, false); !errors.Is(err, s3objects.ErrForgeable) || !strings.Contains(err.Error(), "STREAMING-UNSIGNED-PAYLOAD-TRAILER") {
		t.Errorf("forgeable: %v", err)
	}
	if err := check(srv.Endpoint, true); err != nil {
		t.Error(err)
	}
	if err := check("http://127.0.0.1:1", false); err != nil {
		t.Errorf("down: %v", err)
	}
	_, err := srv.Client().PutBucketVersioning(t.Context(), &s3.PutBucketVersioningInput{
		Bucket: &name, VersioningConfiguration: &types.VersioningConfiguration{Status: types.BucketVersioningStatusEnabled},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := check(srv.Endpoint, true); err == nil || !strings.Contains(err.Error(), "suspend its versioning") {
		t.Errorf("versions: %v", err)
	}
}

// An audit finds an upload without a notification. The observer learns of its change and of the counts.
func TestObserver(t *testing.T) {
	srv := servertest.MinIO(t, servertest.Options{})
	store, err := s3bucket.New(t.Context(), s3bucket.Config{Endpoint: srv.Endpoint, PathStyle: true, AccessKey: srv.AccessKey, SecretKey: srv.SecretKey})
	if err != nil {
		t.Fatal(err)
	}
	o := &observer{}
	s, err := New(Config{
		Index: memory.New(), Store: store, Bucket: srv.NewBucket(t), Prefix: "files/", Secret: secret, AcceptForgeableUploads: true,
		Observer: o, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	f, _, err := s.service.Upload(t.Context(), "e", "", files.Promise{Size: 5, SHA256: sha256.Sum256([]byte("hello"))})
	if err == nil {
		err = s.objects.Put(t.Context(), &f, strings.NewReader("hello"))
	}
	for _, dry := range []bool{true, false} {
		if err == nil {
			_, err = s.Audit(t.Context(), files.AuditOptions{DryRun: dry})
		}
	}
	if want := (files.StateCount{Files: 1, Bytes: 5}); err != nil || !slices.Equal(o.states, []files.State{files.Indexed}) || len(o.counts) != 1 || o.counts[0] != want {
		t.Errorf("%v, changed to %v, audited %v", err, o.states, o.counts)
	}
}

type observer struct {
	Observer
	states []files.State
	counts []files.StateCount // of indexed files
}

func (o *observer) Changed(to files.State) { o.states = append(o.states, to) }
func (o *observer) Audited(r *files.AuditReport) {
	o.counts = append(o.counts, r.States[files.Indexed])
}

func TestConfigDefaultsAndErrors(t *testing.T) {
	store, err := s3bucket.New(t.Context(), s3bucket.Config{Endpoint: "http://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(Config{Index: memory.New(), Store: store, Bucket: "b", Secret: secret})
	if err != nil {
		t.Fatal(err)
	}
	if want := (files.Usage{Bytes: 10 << 30, Open: 1000}); s.service.Times.Upload != time.Hour || s.service.Limit("e") != want || s.MaxSize != 1<<30 || s.Listen != "127.0.0.1:8090" {
		t.Errorf("%+v, %+v", s.Config, s.service.Times)
	}
	for what, spoil := range map[string]func(*Config){
		"%": func(c *Config) { c.Prefix = "a%2Fb/" }, "?": func(c *Config) { c.Prefix = "a?b/" }, "#": func(c *Config) { c.Prefix = "a#b/" },
		"too large": func(c *Config) { c.MaxSize = 5<<40 + 1 }, "a longest upload below 0": func(c *Config) { c.LongestUpload = -1 },
		"no index": func(c *Config) { c.Index = nil }, "no store": func(c *Config) { c.Store = nil }, "no bucket": func(c *Config) { c.Bucket = "" },
		"a short secret": func(c *Config) { c.Secret = secret[1:] },
	} {
		c := Config{Index: memory.New(), Store: store, Bucket: "b", Secret: secret}
		spoil(&c)
		if _, err := New(c); err == nil {
			t.Errorf("%s: accepted", what)
		}
	}
}

func TestShutdownCancelsSlowRequests(t *testing.T) {
	s := &Server{Config: Config{Logger: slog.New(slog.DiscardHandler)}}
	begun, ended := make(chan struct{}), false
	api := httptest.NewServer(s.trackRequests(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(begun)
		<-r.Context().Done()
		ended = true
	})))
	defer api.Close()
	asked := make(chan error, 1)
	go func() {
		resp, err := api.Client().Get(api.URL)
		if err == nil {
			err = resp.Body.Close()
		}
		asked <- err
	}()
	<-begun
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := s.shutDown(ctx, api.Config); err != nil || !ended {
		t.Errorf("%v, ended %v", err, ended)
	}
	if <-asked == nil {
		t.Error("the request was not cut off")
	}
}

var secret = []byte("01234567890123456789012345678901")
