package audit_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/pawlhq/pawl/audit"
	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/bucket/s3bucket"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/proof/servertest"
)

// unlistableStore cannot list or read keys that begin with "bad" or "o/bad".
type unlistableStore struct {
	bucket.Store
	keyless bool // errors have no key
}

func (u unlistableStore) bad(key string) bool {
	return strings.HasPrefix(strings.TrimPrefix(key, "o/"), "bad")
}

func (u unlistableStore) List(ctx context.Context, name, prefix, startAfter string) iter.Seq2[bucket.Info, error] {
	return func(yield func(bucket.Info, error) bool) {
		for info, err := range u.Store.List(ctx, name, prefix, startAfter) {
			if u.bad(info.Key) {
				info, err = bucket.Info{Key: info.Key}, fmt.Errorf("%w: %s", bucket.ErrUnlistable, info.Key)
				if u.keyless {
					info.Key = ""
				}
			}
			if !yield(info, err) || err != nil && u.keyless {
				return
			}
		}
	}
}

func (u unlistableStore) Head(ctx context.Context, ref event.Object) (bucket.Info, error) {
	if u.bad(ref.Key) {
		return bucket.Info{}, bucket.ErrInvalid
	}
	return u.Store.Head(ctx, ref)
}

func (w *world) unlistableAudit(t *testing.T, o audit.Options) (audit.Report, string, error) {
	t.Helper()
	var log bytes.Buffer
	a, err := audit.New(audit.Config{
		Ledger: w.ledger, Objects: unlistableStore{Store: w.Store}, Pipelines: []audit.Pipeline{w.pipeline}, Logger: slog.New(slog.NewTextHandler(&log, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	o.SettleWindow, o.Ranges = time.Hour, 1
	r, err := a.Run(t.Context(), o)
	return r, log.String(), err
}

func TestUnlistableObjects(t *testing.T) {
	w := newWorld(t)
	w.settled(t,
		rowWithHave("bad-known", event.Created, w.put(t, "bad-known", "a")),
		rowWithHave("gone", event.Created, ledger.Identity{ETag: "x"}),
	)
	for _, key := range []string{"a", "bad-new", "bad-unmatched.tmp", "z"} {
		w.put(t, key, "a")
	}
	r, log, err := w.unlistableAudit(t, audit.Options{})
	want := audit.Counts{Listed: 4, Rows: 2, Created: 2, Inspected: 3, LostCreations: 2, Removable: 1, LostRemovals: 1, Repaired: 3, Inaccessible: 2}
	if got := r.Total(); err != nil || got != want {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	for _, key := range []string{"bad-known", "bad-new"} {
		named := fmt.Sprintf("%+v", audit.Example{What: "not listable by the store: remove it", Pipeline: "p", Object: "s3://photos/" + key})
		if n := strings.Count(fmt.Sprintf("%+v", r.Examples), named); n != 1 || strings.Count(log, "object=s3://photos/"+key) != 1 {
			t.Errorf("%s is an example %d times, want once, and once in the log:\n%+v\n%s", key, n, r.Examples, log)
		}
	}
	if raised := w.settle(t); len(raised) != 3 || strings.Contains(fmt.Sprint(raised), "bad") {
		t.Errorf("raised %q: want the losses of a, gone, and z", raised)
	}
	_, err = w.auditor(t).Run(t.Context(), audit.Options{SettleWindow: time.Hour, Listing: unlistableStore{w.Store, true}, ListingName: "keyless"})
	if !errors.Is(err, bucket.ErrUnlistable) {
		t.Errorf("%v: want an error, because no key is known", err)
	}
}

// MinIO cannot list an object that was put with a certain request header.
func TestUnlistableOnMinIO(t *testing.T) {
	srv := servertest.MinIO(t, servertest.Options{})
	w := newWorld(t)
	w.pipeline.Bucket = srv.NewBucket(t)
	broken := s3.WithAPIOptions(smithyhttp.SetHeaderValue("X-Minio-Replication-Encrypted-Multipart", "1"))
	for key, options := range map[string][]func(*s3.Options){"a": nil, "bad": {broken}, "z": nil} {
		in := &s3.PutObjectInput{Bucket: &w.pipeline.Bucket, Key: &key, Body: strings.NewReader("hello")}
		if _, err := srv.Client().PutObject(t.Context(), in, options...); err != nil {
			t.Fatal(err)
		}
	}
	known, gone := rowWithHave("bad", event.Created, ledger.Identity{ETag: "x"}), rowWithHave("gone", event.Created, ledger.Identity{ETag: "x"})
	known.Bucket, gone.Bucket = w.pipeline.Bucket, w.pipeline.Bucket
	w.settled(t, known, gone)
	objects, err := s3bucket.New(t.Context(), s3bucket.Config{
		Endpoint: srv.Endpoint, Region: srv.Region, PathStyle: true, AccessKey: srv.AccessKey, SecretKey: srv.SecretKey,
	})
	if err != nil {
		t.Fatal(err)
	}
	a, err := audit.New(audit.Config{Ledger: w.ledger, Objects: objects, Pipelines: []audit.Pipeline{w.pipeline}, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	r, err := a.Run(t.Context(), audit.Options{SettleWindow: -time.Hour}) // a and z are new
	if got := r.Total(); err != nil || got.Listed != 3 || got.Inaccessible != 1 || got.LostCreations != 2 || got.LostRemovals != 1 {
		t.Errorf("%+v, %v: want the losses of a, gone, and z", got, err)
	}
	if raised := w.settle(t); len(raised) != 3 || strings.Contains(fmt.Sprint(raised), "/bad") {
		t.Errorf("raised %q", raised)
	}
}

func TestUnlistableOutputs(t *testing.T) {
	w := newWorld(t)
	w.places("in/")
	w.settled(t, rowWithHave("in/bad-output", event.Created, w.put(t, "in/bad-output", "a")), rowWithHave("in/none", event.Created, w.put(t, "in/none", "a")))
	w.published(t, "o/bad-orphan.webp", "p", "in/bad-orphan")
	w.published(t, "o/bad-output.webp", "p", "in/bad-output")
	w.published(t, "o/orphan.webp", "p", "in/orphan")
	r, log, err := w.unlistableAudit(t, audit.Options{Outputs: true})
	if got := r.Total(); err != nil || got.Inaccessible != 2 || got.NoOutput != 1 || got.NoInput != 1 {
		t.Errorf("%+v, %v: want 2 inaccessible outputs, one missing, and one without object", got, err)
	}
	if strings.Count(log, "object=s3://out/o/bad-orphan.webp") != 1 {
		t.Errorf("%s\nwant the output named once", log)
	}
}
