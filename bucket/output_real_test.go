package bucket_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/bucket/buckettest"
	"github.com/pawlhq/pawl/bucket/s3bucket"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/proof/servertest"
)

func TestOutputOnServers(t *testing.T) {
	t.Run("gofakes3", func(t *testing.T) { outputOn(t, servertest.S3(t)) })
	servertest.Each(t, servertest.Options{}, outputOn)
	t.Run("copies", func(t *testing.T) {
		outputOn(t, servertest.WithCopyConditions(t, servertest.MinIO(t, servertest.Options{})))
	})
}

func outputOn(t *testing.T, srv *servertest.Server) {
	store, err := s3bucket.New(t.Context(), s3bucket.Config{
		Endpoint: srv.Endpoint, Region: srv.Region, PathStyle: true,
		AccessKey: srv.AccessKey, SecretKey: srv.SecretKey,
	})
	if err != nil {
		t.Fatal(err)
	}
	b := srv.NewBucket(t)
	t.Run("publish", func(t *testing.T) {
		for i, tc := range publishCases {
			for j, before := range []string{"", "before"} {
				w := worldOn(t, store, event.Object{Bucket: b, Key: fmt.Sprintf("gray/%d %d.jpg", i, j)})
				t.Run(fmt.Sprintf("%s, pinned %q", tc.name, before), func(t *testing.T) {
					w.t = t
					if before != "" {
						w.byOther(before)
					}
					want := tc.want
					if want.content == "" {
						want.content = before
					}
					o := w.pin()
					tc.arrange(w)
					r, err := w.publish(o)
					w.check(buckettest.Put, r, err, want)
				})
			}
		}
	})
	for _, method := range []bucket.CopyMethod{bucket.CopyWhole, bucket.CopyParts} {
		if srv.CopyConditions&method != 0 {
			t.Run(fmt.Sprint("copy ", method), func(t *testing.T) {
				playCopies(t, method, func(i int, before string) *world {
					return worldOn(t, store, event.Object{Bucket: b, Key: fmt.Sprintf("copy/%d/%d%s", method, i, before)})
				})
			})
		}
	}
	t.Run("remove", func(t *testing.T) {
		for i, tc := range removeCases {
			if tc.want.content == "other" && !srv.DeleteConditions {
				continue // the server ignores If-Match on DELETE
			}
			w := worldOn(t, store, event.Object{Bucket: b, Key: fmt.Sprint("removed/", i)})
			t.Run(tc.name, func(t *testing.T) {
				w.t = t
				w.byOther("before")
				o := w.pin()
				tc.arrange(w)
				r, err := o.Remove(t.Context())
				w.check(buckettest.Delete, r, err, tc.want)
			})
		}
	})
	t.Run("cut", func(t *testing.T) { cutOutput(t, worldOn(t, store, event.Object{Bucket: b, Key: "cut"})) })
	t.Run("race", func(t *testing.T) { raceOutputs(t, worldOn(t, store, event.Object{Bucket: b, Key: "raced"})) })
}

// Some servers keep a part of a truncated body with the stamp.
func cutOutput(t *testing.T, w *world) {
	const size = 3 << 20
	broken := errors.New("the disk broke")
	for range 5 {
		_, err := w.pin().Publish(t.Context(), stamp("mine"), func() (io.ReadCloser, error) {
			half := strings.NewReader(strings.Repeat("x", size/2))
			return io.NopCloser(io.MultiReader(half, iotest.ErrReader(broken))), nil
		}, size, "")
		if !errors.Is(err, bucket.ErrUnclear) && !errors.Is(err, bucket.ErrOutputChanged) {
			t.Errorf("Publish = %v, want ErrUnclear or ErrOutputChanged", err)
		}
		if src, ok := w.pin().Source(); ok {
			t.Errorf("the output records %q as its source, want no source", src)
		}
	}
}

func TestRacingOutputs(t *testing.T) { raceOutputs(t, newWorld(t)) }

func raceOutputs(t *testing.T, w *world) {
	const attempts = 16
	for round := range 5 {
		var wg sync.WaitGroup
		start := make(chan struct{})
		errs := make([]error, attempts)
		for i := range attempts {
			o := w.pin()
			wg.Go(func() {
				<-start
				nonce := fmt.Sprintf("%d-%d", round, i)
				var r bucket.Result
				r, errs[i] = o.Publish(t.Context(), stamp(nonce), text(nonce), int64(len(nonce)), "")
				if !r.Sent || !r.Sure {
					t.Errorf("attempt %d: %+v, want it sent and sure", i, r)
				}
			})
		}
		close(start)
		wg.Wait()
		winner := ""
		for i, err := range errs {
			switch {
			case err == nil && winner != "":
				t.Errorf("round %d: both %s and %d landed", round, winner, i)
			case err == nil:
				winner = fmt.Sprintf("%d-%d", round, i)
			case !errors.Is(err, bucket.ErrOutputChanged) && !errors.Is(err, bucket.ErrConflict):
				t.Errorf("round %d, attempt %d: %v", round, i, err)
			}
		}
		if got := w.content(); winner == "" || got != winner {
			t.Errorf("round %d: content %q, published by %q", round, got, winner)
		}
	}
}
