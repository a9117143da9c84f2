package files_test

import (
	"bytes"
	"crypto/sha256"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlhq/pawl/bucket/s3bucket"
	"github.com/pawlhq/pawl/files"
	"github.com/pawlhq/pawl/files/s3objects"
	"github.com/pawlhq/pawl/proof/servertest"
	"github.com/pawlhq/pawl/store/memory"
)

type auditedService struct {
	*files.Service
	t    *testing.T
	list func() iter.Seq2[files.Listed, error]
}

func newAuditedService(t *testing.T) *auditedService {
	srv := servertest.MinIO(t, servertest.Options{})
	name := srv.NewBucket(t)
	x := &auditedService{t: t, Service: &files.Service{
		Index: files.NewIndex(memory.New()), Objects: s3objects.New(srv.Client(), name, "").AcceptForgeable(), Times: files.DefaultTimes(), Prefix: "files/",
	}}
	store, err := s3bucket.New(t.Context(), s3bucket.Config{
		Endpoint: srv.Endpoint, Region: "us-east-1", PathStyle: true, AccessKey: srv.AccessKey, SecretKey: srv.SecretKey,
	})
	if err != nil {
		t.Fatal(err)
	}
	x.list = func() iter.Seq2[files.Listed, error] {
		return func(yield func(files.Listed, error) bool) {
			for info, err := range store.List(t.Context(), name, x.Prefix, "") {
				if !yield(files.Listed{Key: info.Key, Size: info.Size, LastModified: info.ModTime}, err) {
					return
				}
			}
		}
	}
	return x
}

func (x *auditedService) uploadUnnoticed() files.File {
	x.t.Helper()
	f, _, err := x.Upload(x.t.Context(), "e", "", files.Promise{Size: 5, ContentType: "text/plain", SHA256: sha256.Sum256([]byte("hello"))})
	if err != nil {
		x.t.Fatal(err)
	}
	x.put(&f, "hello")
	return f
}

func (x *auditedService) put(f *files.File, body string) {
	x.t.Helper()
	f.Promise = files.Promise{Size: int64(len(body)), ContentType: "text/plain", SHA256: sha256.Sum256([]byte(body))}
	if err := x.Objects.Put(x.t.Context(), f, bytes.NewReader([]byte(body))); err != nil {
		x.t.Fatal(err)
	}
}

func (x *auditedService) wantAudit(o files.AuditOptions, want files.AuditReport) {
	x.t.Helper()
	if want.Moved == nil {
		want.Moved = map[string]int64{}
	}
	got, err := x.Audit(x.t.Context(), x.list(), o)
	if want.States == nil {
		got.States = nil
	}
	if d := cmp.Diff(want, got); err != nil || d != "" {
		x.t.Error(err, d)
	}
}

func TestAudit(t *testing.T) {
	x := newAuditedService(t)
	came, taken, changed := x.uploadUnnoticed(), x.uploadUnnoticed(), x.uploadUnnoticed()
	x.wantAudit(files.AuditOptions{DryRun: true}, files.AuditReport{Objects: 3, Rows: 3, Moved: map[string]int64{"indexed": 3}})
	x.wantAudit(files.AuditOptions{}, files.AuditReport{Objects: 3, Rows: 3, Moved: map[string]int64{"indexed": 3}})
	x.wantAudit(files.AuditOptions{}, files.AuditReport{Objects: 3, Rows: 3})
	for _, f := range []files.File{taken, changed} {
		if err := x.Objects.Remove(t.Context(), f.Key); err != nil {
			t.Fatal(err)
		}
	}
	x.put(&changed, "something else")
	x.put(&files.File{ID: "f", Key: "files/notes.txt"}, "not a file of the service")
	x.put(&files.File{ID: "p", Key: "files/.pawl-doctor/1"}, "a proof of the store is under way")
	x.put(&files.File{ID: "f", Key: "files/01990000-0000-7000-8000-000000000000"}, "a file that a restored index does not know")
	left := files.AuditReport{Objects: 5, Rows: 3, Orphans: 1, OrphanKeys: []string{"files/01990000-0000-7000-8000-000000000000"}, Foreign: 1}
	found := left
	found.Moved = map[string]int64{"lost": 2}
	found.States = map[files.State]files.StateCount{files.Indexed: {Files: 1, Bytes: 5}, files.Lost: {Files: 2, Bytes: 10}}
	x.wantAudit(files.AuditOptions{}, found)
	x.wantAudit(files.AuditOptions{}, left)
	left.Removed = 1
	x.wantAudit(files.AuditOptions{Limit: 1}, left)
	x.wantAudit(files.AuditOptions{Limit: 1}, files.AuditReport{Objects: 4, Rows: 3, Foreign: 1})
	if f, err := x.Get(t.Context(), came.ID); err != nil || f.State != files.Indexed {
		t.Errorf("%s, %v", f.State, err)
	}
}

func TestAuditFindsReplacedObject(t *testing.T) {
	x := newAuditedService(t)
	f := x.uploadUnnoticed()
	x.Now = func() time.Time { return time.Now().Add(-time.Hour) }
	x.wantAudit(files.AuditOptions{}, files.AuditReport{Objects: 1, Rows: 1, Moved: map[string]int64{"indexed": 1}})
	if err := x.Objects.Remove(t.Context(), f.Key); err != nil {
		t.Fatal(err)
	}
	x.put(&f, "HELLO")
	x.wantAudit(files.AuditOptions{}, files.AuditReport{Objects: 1, Rows: 1, Moved: map[string]int64{"lost": 1}})
}

// Audits may remove objects that are named like a file, so TestID rejects other UUIDs.
func TestID(t *testing.T) {
	s := files.Service{Prefix: "files/"}
	const id = "019b0000-0000-7000-8000-00000000000a"
	for key, want := range map[string]bool{
		id: false, "files/" + id: true, "files/" + strings.ToUpper(id): false, "files/{" + id + "}": false, "files/urn:uuid:" + id: false,
		"files/" + strings.ReplaceAll(id, "-", ""): false, "files/d41d8cd98f00b204e9800998ecf8427e": false,
		"files/6ba7b810-9dad-11d1-80b4-00c04fd430c8": false, "files/f47ac10b-58cc-4372-a567-0e02b2c3d479": false,
		"files/" + id + "/a": false, "files/": false,
	} {
		if got, ours := s.ID(key); ours != want || want && got != id {
			t.Errorf("%s: %q, %v", key, got, ours)
		}
	}
}

func TestAuditAbortsOldUploads(t *testing.T) {
	x := newAuditedService(t)
	came := x.uploadUnnoticed()
	for _, key := range []string{came.Key, "files/01990000-0000-7000-8000-000000000000", "files/notes.txt"} {
		if _, err := x.Objects.Begin(t.Context(), &files.File{Key: key, Promise: files.Promise{PartSize: 5 << 20}}); err != nil {
			t.Fatal(err)
		}
	}
	fresh := files.AuditReport{Objects: 1, Rows: 1, Moved: map[string]int64{"indexed": 1}}
	x.wantAudit(files.AuditOptions{}, fresh)
	x.Now = func() time.Time { return time.Now().Add(14 * time.Hour) }
	found := files.AuditReport{Objects: 1, Rows: 1, Leftovers: 1, Orphans: 1, OrphanKeys: []string{"files/01990000-0000-7000-8000-000000000000"}}
	x.wantAudit(files.AuditOptions{DryRun: true, Limit: 1}, found)
	found.Removed = 1
	x.wantAudit(files.AuditOptions{Limit: 1}, found)
	x.wantAudit(files.AuditOptions{}, files.AuditReport{Objects: 1, Rows: 1})
}
