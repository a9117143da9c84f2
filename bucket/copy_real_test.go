package bucket_test

import (
	"bytes"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/bucket/s3bucket"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/proof/servertest"
)

func TestCopyWhoseAnswerIsLost(t *testing.T) {
	servertest.Each(t, servertest.Options{}, func(t *testing.T, srv *servertest.Server) {
		loseAnswer(t, srv, bucket.CopyParts, "CompleteMultipartUploadResult")
	})
	t.Run("copies", func(t *testing.T) {
		loseAnswer(t, servertest.WithCopyConditions(t, servertest.MinIO(t, servertest.Options{})), bucket.CopyWhole, "CopyObjectResult")
	})
}

func loseAnswer(t *testing.T, srv *servertest.Server, m bucket.CopyMethod, answer string) {
	var lost atomic.Int32
	relay := servertest.NewLossyProxy(t, strings.TrimPrefix(srv.Endpoint, "http://"), func(piece []byte) bool {
		return bytes.Contains(piece, []byte(answer)) && lost.Add(1) == 1
	})
	store, err := s3bucket.New(t.Context(), s3bucket.Config{
		Endpoint: "http://" + relay.Addr, Region: srv.Region, PathStyle: true, AccessKey: srv.AccessKey, SecretKey: srv.SecretKey,
	})
	if err != nil {
		t.Fatal(err)
	}
	w := worldOn(t, store, event.Object{Bucket: srv.NewBucket(t), Key: "out"})
	from := w.source("mine")
	r, err := w.publishCopy(w.pin(), from, m)
	if err != nil || !r.Sent || !r.Sure || lost.Load() != 1 || w.content() != "mine" {
		t.Errorf("%+v, %v, %d answers lost, content %q, want one answer lost and the copy landed, surely", r, err, lost.Load(), w.content())
	}
}
