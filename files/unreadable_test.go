package files_test

import (
	"crypto/sha256"
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/pawlhq/pawl/files"
	"github.com/pawlhq/pawl/files/s3objects"
	"github.com/pawlhq/pawl/proof/servertest"
	"github.com/pawlhq/pawl/store/memory"
)

// A user can make an object unreadable with a replication header of MinIO. HEAD then fails.
func TestUnreadableObjects(t *testing.T) {
	srv := servertest.MinIO(t, servertest.Options{})
	name := srv.NewBucket(t)
	s := &files.Service{Index: files.NewIndex(memory.New()), Objects: s3objects.New(srv.Client(), name, ""), Times: files.DefaultTimes(), Prefix: "files/"}
	s.Objects.(*s3objects.Bucket).AllowProbe(s.Prefix)
	past := time.Now().Add(-48 * time.Hour)
	for _, header := range []string{"X-Minio-Replication-Encrypted-Multipart", "X-Minio-Replication-Server-Side-Encryption-Sealed-Key"} {
		for _, test := range []struct {
			from   files.State
			states []files.State // after each reconciliation
			stays  bool
		}{
			{from: files.Pending, states: []files.State{files.Expired}},
			{from: files.Deleted, states: []files.State{files.Purging, files.Gone}},
			{from: files.Expired, states: []files.State{files.Expired}},
			{from: files.Indexed, states: []files.State{files.Lost}, stays: true},
		} {
			t.Run(header+" "+test.from.String(), func(t *testing.T) {
				id := strings.TrimPrefix(orphanKey(len(header)*10+int(test.from)), s.Prefix)
				f := files.File{ID: id, Entity: "e", Key: s.Prefix + id, State: test.from, LandBy: past, DeletedAt: past, DropAt: time.Now().Add(time.Hour)}
				f.Promise = files.Promise{Size: 5, ContentType: "text/plain", SHA256: sha256.Sum256([]byte("hello"))}
				if _, err := s.Index.Apply(t.Context(), files.Change{Next: f, Limit: unlimited}); err != nil {
					t.Fatal(err)
				}
				_, err := srv.Client().PutObject(t.Context(), &s3.PutObjectInput{
					Bucket: &name, Key: &f.Key, Body: strings.NewReader("hello"), ChecksumSHA256: aws.String(base64.StdEncoding.EncodeToString(f.SHA256[:])),
				}, s3.WithAPIOptions(smithyhttp.SetHeaderValue(header, "1")))
				if err != nil {
					t.Fatal(err)
				}
				for _, want := range test.states {
					if got, err := s.Reconcile(t.Context(), id, true); err != nil || got.State != want {
						t.Fatalf("%s, %v: want it %s", got.State, err, want)
					}
				}
				if seen, err := s.Objects.Stat(t.Context(), f.Key); err != nil || seen.Found != test.stays {
					t.Errorf("%+v, %v: want the file present: %v", seen, err, test.stays)
				}
				if err := s.Objects.Remove(t.Context(), f.Key); err != nil {
					t.Error(err)
				}
			})
		}
	}
}
