package s3bucket_test

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/proof/servertest"
)

func TestPutSigned(t *testing.T) {
	servertest.Each(t, servertest.Options{}, func(t *testing.T, srv *servertest.Server) {
		store := open(t, srv, srv.SecretKey)
		ref := event.Object{Bucket: srv.NewBucket(t), Key: "p/a b+c.json"}
		put := func(body string, signed time.Time) error {
			o := bucket.Object{Body: bytes.NewReader([]byte(body)), Size: int64(len(body)), Metadata: map[string]string{"pawl-digest": "d"}}
			_, err := store.PutSigned(t.Context(), ref, o, bucket.Condition{IfAbsent: true}, signed, 5*time.Minute)
			return err
		}
		if err := put("late", time.Now().Add(-6*time.Minute)); !errors.Is(err, bucket.ErrExpired) {
			t.Errorf("an expired request: %v", err)
		}
		if err := put("first", time.Now().Add(-4*time.Minute)); err != nil {
			t.Errorf("a request that has not expired: %v", err)
		}
		if err := put("second", time.Now()); !errors.Is(err, bucket.ErrPrecondition) {
			t.Errorf("a second object under the key: %v", err)
		}
		info, err := store.Head(t.Context(), ref)
		if err != nil || info.Size != 5 || info.Metadata["pawl-digest"] != "d" {
			t.Errorf("it is %+v, %v", info, err)
		}
	})
}
