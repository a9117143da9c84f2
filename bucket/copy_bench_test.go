//go:build unix

package bucket_test

import (
	"bytes"
	"fmt"
	"io"
	"syscall"
	"testing"
	"time"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/bucket/s3bucket"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/proof/servertest"
)

// BenchmarkCopy compares a copy by the store with streaming. It divides the time of streaming by
// the time of the copy, and likewise the CPU times.
func BenchmarkCopy(b *testing.B) {
	for _, server := range []struct {
		name    string
		start   func(testing.TB, servertest.Options) *servertest.Server
		methods map[string]bucket.CopyMethod
	}{
		{"minio", servertest.MinIO, map[string]bucket.CopyMethod{"whole": bucket.CopyWhole, "parts": bucket.CopyParts}},
		{"versitygw", servertest.VersityGW, map[string]bucket.CopyMethod{"parts": bucket.CopyParts}},
	} {
		srv := server.start(b, servertest.Options{})
		store, err := s3bucket.New(b.Context(), s3bucket.Config{
			Endpoint: srv.Endpoint, Region: srv.Region, PathStyle: true, AccessKey: srv.AccessKey, SecretKey: srv.SecretKey,
		})
		if err != nil {
			b.Fatal(err)
		}
		for method, m := range server.methods {
			for _, mib := range []int64{1, 16, 256} {
				b.Run(fmt.Sprintf("%s/%s/%dMiB", server.name, method, mib), func(b *testing.B) {
					benchCopy(b, store, srv.NewBucket(b), m, mib<<20)
				})
			}
		}
	}
}

func benchCopy(b *testing.B, store bucket.Store, name string, m bucket.CopyMethod, size int64) {
	from := bucket.Source{Ref: event.Object{Bucket: name, Key: "in"}}
	content := bucket.Object{Body: bytes.NewReader(make([]byte, size)), Size: size}
	var err error
	if from.ETag, err = store.Put(b.Context(), from.Ref, content, bucket.Condition{}); err != nil {
		b.Fatal(err)
	}
	open := func() (io.ReadCloser, error) {
		_, body, err := store.Get(b.Context(), from.Ref)
		return body, err
	}
	publish := func(nonce string, methods bucket.CopyMethod) (took, cpu time.Duration) {
		o, err := bucket.Pin(b.Context(), store, event.Object{Bucket: name, Key: fmt.Sprint("out", methods)})
		if err != nil {
			b.Fatal(err)
		}
		began, used := time.Now(), cpuTime(b)
		if _, err := o.PublishCopy(b.Context(), stamp(nonce), from, methods, open, size, ""); err != nil {
			b.Fatal(err)
		}
		return time.Since(began), cpuTime(b) - used
	}
	var copied, streamed, copiedCPU, streamedCPU time.Duration
	for i := 0; b.Loop(); i++ {
		took, cpu := publish(fmt.Sprint("copy", i), m)
		copied, copiedCPU = copied+took, copiedCPU+cpu
		took, cpu = publish(fmt.Sprint("stream", i), 0)
		streamed, streamedCPU = streamed+took, streamedCPU+cpu
	}
	b.ReportMetric(float64(streamed)/float64(copied), "ratio")
	b.ReportMetric(float64(streamedCPU)/float64(copiedCPU), "cpu-ratio")
}

func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
