package s3bucket_test

import (
	"bytes"
	"net/http"
	"testing"
	"time"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/proof/servertest"
)

// A gateway's error must not change the estimate, which must never be ahead of the store's clock.
func TestStoreTime(t *testing.T) {
	var off time.Duration
	status := http.StatusNotFound
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Date", time.Now().Add(off).UTC().Format(http.TimeFormat))
		w.WriteHeader(status)
	})
	wrong := time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC)
	if got := s.StoreTime(wrong); !got.Equal(wrong) {
		t.Errorf("before any answer: %v, want the caller's %v", got, wrong)
	}
	answer := func() { _ = s.Delete(t.Context(), ref, bucket.Condition{}) }
	near := func(off time.Duration) {
		t.Helper()
		if behind := time.Now().Add(off).Sub(s.StoreTime(wrong)); behind < 0 || behind > 20*time.Second {
			t.Errorf("the estimate is %v behind a clock that is off by %v", behind, off)
		}
	}
	for _, off = range []time.Duration{3 * time.Hour, -3 * time.Hour} {
		answer()
		near(off)
	}
	off, status = 9*time.Hour, http.StatusBadGateway
	answer()
	near(-3 * time.Hour)
}

func TestSignedWithStoreTime(t *testing.T) {
	servertest.Each(t, servertest.Options{}, func(t *testing.T, srv *servertest.Server) {
		store := open(t, srv, srv.SecretKey)
		ref := event.Object{Bucket: srv.NewBucket(t), Key: "k"}
		if err := store.Check(t.Context(), ref.Bucket); err != nil {
			t.Fatal(err)
		}
		for _, off := range []time.Duration{-time.Hour, time.Hour} {
			o := bucket.Object{Body: bytes.NewReader([]byte("x")), Size: 1}
			signed := store.StoreTime(time.Now().Add(off))
			if _, err := store.PutSigned(t.Context(), ref, o, bucket.Condition{}, signed, 5*time.Minute); err != nil {
				t.Errorf("with a clock that is off by %v: %v", off, err)
			}
		}
	})
}
