//go:build unix

package e2e

import (
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/pawlhq/pawl/proof/servertest"
)

// A worker stores nothing if its bucket is in another store or was emptied.
func TestArchiveAnotherStore(t *testing.T) {
	t.Parallel()
	a := newArchiveTest(t, servertest.Kinesalite(t), rand.New(rand.NewPCG(*firstSeed, 22)))
	ends := func(w *archiveWorker) {
		t.Helper()
		w.signal(syscall.SIGTERM)
		if code, _ := w.waitForExit(time.Minute); code != 0 {
			t.Errorf("the exit code is %d", code)
		}
	}
	refuses := func(w *archiveWorker, in *servertest.Server) {
		t.Helper()
		code, _ := w.waitForExit(time.Minute)
		if said := w.logText(); code != 2 || !strings.Contains(said, "the bucket does not have the claim file of this archive") {
			t.Errorf("the exit code is %d:\n%s", code, said)
		}
		out, err := in.Client().ListObjectsV2(t.Context(), &s3.ListObjectsV2Input{Bucket: &a.bucket})
		if err != nil || len(out.Contents) > 0 {
			t.Errorf("the bucket has %d objects: %v", len(out.Contents), err)
		}
	}
	first := a.worker("first", a.fleet.config)
	a.putUntil(200)
	a.waitUntilStored()
	ends(first)

	other := servertest.MinIO(t, servertest.Options{})
	if _, err := other.Client().CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: &a.bucket}); err != nil {
		t.Fatal(err)
	}
	key, secret := a.fleet.env[0], a.fleet.env[1]
	a.fleet.env = []string{"AWS_ACCESS_KEY_ID=" + other.AccessKey, "AWS_SECRET_ACCESS_KEY=" + other.SecretKey}
	refuses(a.worker("other", a.writeVariant("other", a.server.Endpoint, other.Endpoint)), other)
	a.fleet.env = []string{key, secret}

	again := a.worker("again", a.fleet.config)
	a.putUntil(400)
	a.waitUntilStored()
	ends(again)
	a.verify()
	a.readAll()

	out, err := a.server.Client().ListObjectsV2(t.Context(), &s3.ListObjectsV2Input{Bucket: &a.bucket})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range out.Contents {
		if _, err := a.server.Client().DeleteObject(t.Context(), &s3.DeleteObjectInput{Bucket: &a.bucket, Key: o.Key}); err != nil {
			t.Fatal(err)
		}
	}
	refuses(a.worker("emptied", a.fleet.config), a.server)
}
