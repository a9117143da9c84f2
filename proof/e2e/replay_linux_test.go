package e2e

import (
	"bufio"
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"golang.org/x/sync/errgroup"

	"github.com/pawlhq/pawl/proof/servertest"
)

const replayConfig = `
ledger: sqlite:%s
objects: {endpoint: %q, region: %s, path_style: true}
pipelines:
  - name: load
    match: {bucket: inputs}
    http: {url: %q}
`

// This is the promise: so many objects in so much memory.
const (
	replayObjects = 100_000
	replayMB      = 200
)

func BenchmarkReplay(b *testing.B) {
	dir := b.TempDir()
	binary := build(b)
	srv := servertest.S3(b)
	fill(b, srv)
	var posts atomic.Int64
	sink := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { posts.Add(1) }))
	b.Cleanup(sink.Close)
	input := notifications(b, dir)

	peak := int64(0)
	for n := 0; b.Loop(); n++ {
		posts.Store(0)
		config := filepath.Join(dir, fmt.Sprintf("%d.yaml", n))
		text := fmt.Sprintf(replayConfig, filepath.Join(dir, fmt.Sprintf("%d.db", n)), srv.Endpoint, srv.Region, sink.URL)
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			b.Fatal(err)
		}
		cmd := exec.CommandContext(b.Context(), binary, "replay", "-c", config, input)
		cmd.Env = append(os.Environ(), "AWS_ACCESS_KEY_ID="+srv.AccessKey, "AWS_SECRET_ACCESS_KEY="+srv.SecretKey)
		peak = max(peak, runMeasured(b, cmd))
		if got := posts.Load(); got != replayObjects {
			b.Fatalf("%d effects for %d objects", got, replayObjects)
		}
	}
	mb := float64(peak) / 1e6
	b.ReportMetric(mb, "MB")
	b.ReportMetric(float64(b.N*replayObjects)/b.Elapsed().Seconds(), "objects/s")
	b.ReportMetric(0, "ns/op")
	if mb > replayMB {
		b.Errorf("replay needed %.0f MB: at most %d", mb, replayMB)
	}
}

// runMeasured polls the kernel for the peak memory in bytes. The peak that wait(2) reports includes the
// forking process.
func runMeasured(b testing.TB, cmd *exec.Cmd) (peak int64) {
	b.Helper()
	var out bytes.Buffer
	if cmd.Stderr = &out; cmd.Stdout == nil {
		cmd.Stdout = &out
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err := <-ended:
			if err != nil {
				b.Fatalf("%v\n%s", err, out.Bytes())
			}
			return peak
		case <-tick.C:
			peak = max(peak, highWater(cmd.Process.Pid))
		}
	}
}

// See https://man7.org/linux/man-pages/man5/proc_pid_status.5.html
func highWater(pid int) int64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, rest, found := strings.Cut(string(status), "VmHWM:")
	var kb int64
	if _, err := fmt.Sscan(rest, &kb); err != nil || !found {
		return 0
	}
	return kb * 1024
}

func replayKey(i int) string { return fmt.Sprintf("in/%d/%d.csv", i%97, i) }

func fill(b *testing.B, srv *servertest.Server) {
	b.Helper()
	client := srv.Client()
	if _, err := client.CreateBucket(b.Context(), &s3.CreateBucketInput{Bucket: aws.String(inputs)}); err != nil {
		b.Fatal(err)
	}
	g, ctx := errgroup.WithContext(b.Context())
	g.SetLimit(8)
	for i := range replayObjects {
		g.Go(func() error {
			_, err := client.PutObject(ctx, &s3.PutObjectInput{Bucket: aws.String(inputs), Key: aws.String(replayKey(i)), Body: strings.NewReader("x")})
			return err
		})
	}
	if err := g.Wait(); err != nil {
		b.Fatal(err)
	}
}

func notifications(b *testing.B, dir string) string {
	b.Helper()
	path := filepath.Join(dir, "notifications.ndjson")
	f, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	w := bufio.NewWriter(f)
	for i := range replayObjects {
		fmt.Fprintf(w, `{"Records":[{"eventVersion":"2.1","eventSource":"aws:s3","eventTime":"2026-03-01T12:00:00.000Z","eventName":"ObjectCreated:Put",`+
			`"s3":{"bucket":{"name":"inputs"},"object":{"key":%q,"size":1,"eTag":"9dd4e461268c8034f5c8564e155c67a6","sequencer":"0055AED6DC%08X"}}}]}`+"\n",
			replayKey(i), i)
	}
	if err := w.Flush(); err != nil {
		b.Fatal(err)
	}
	if err := f.Close(); err != nil {
		b.Fatal(err)
	}
	return path
}
