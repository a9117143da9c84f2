package e2e

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"golang.org/x/sync/errgroup"

	"github.com/pawlhq/pawl/proof/servertest"
)

var streamBytes = flag.Int64("streambytes", 0, "bytes that TestFilesStream and BenchmarkFiles send through POST /v1/files; 0: 64 MiB, and 1 GiB")

const streamMB = 32

// TestFilesStream checks that the memory of a process stays flat while it streams files. No temporary file
// may remain, even if the client disconnects or the store rejects the upload.
func TestFilesStream(t *testing.T) {
	servertest.Long(t)
	t.Parallel()
	n := *streamBytes
	if n == 0 {
		n = 64 << 20
	}
	s := newStreamTest(t)
	t.Logf("one file: %.1f MB more; four: %.1f MB more", s.memoryRise(t, 1, n), s.memoryRise(t, 4, n/4))
	s.abortUpload(t)
	s.stallUploads(t, n)
	s.uploadWithoutBucket(t)
}

type streamTest struct {
	*filesServer
	*filesClient
	n uint64
}

func newStreamTest(t testing.TB) *streamTest {
	t.Helper()
	server := servertest.MinIO(t, servertest.Options{})
	s := &streamTest{filesServer: serve(t, server, filepath.Join(t.TempDir(), "files.db"))}
	s.filesClient = s.client(t)
	s.HTTP.Timeout = 0
	if err := s.slots[0].waitUntilListening(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, time.Minute, func(ctx context.Context) ([]string, error) {
		_, _, err := s.Try(ctx, http.MethodGet, "/v1/files/none", nil, nil)
		return nil, err
	})
	s.memoryRise(t, 4, 1<<20)
	return s
}

func benchmarkStream(b *testing.B) {
	n := *streamBytes
	if n == 0 {
		n = 1 << 30
	}
	s := newStreamTest(b)
	b.ResetTimer()
	for b.Loop() {
		began := time.Now()
		b.ReportMetric(s.memoryRise(b, 1, n), "one-MB")
		b.ReportMetric(float64(n)/1e6/time.Since(began).Seconds(), "MB/s")
		b.ReportMetric(s.memoryRise(b, 4, n/4), "four-MB")
	}
	reportLoad(b)
}

// memoryRise returns the peak growth in MB.
func (s *streamTest) memoryRise(t testing.TB, files int, size int64) float64 {
	t.Helper()
	pid := s.slots[0].process.Pid
	before := forgetHighWater(t, pid)
	var g errgroup.Group
	for range files {
		s.n++
		seed := s.n
		g.Go(func() error { return s.store(t.Context(), seed, size) })
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	s.waitForCleanup(t)
	mb := float64(highWater(pid)-before) / 1e6
	if mb > streamMB {
		t.Errorf("%d files of %d bytes took %.1f MB: at most %d", files, size, mb, streamMB)
	}
	return mb
}

// See https://man7.org/linux/man-pages/man5/proc_pid_clear_refs.5.html
func forgetHighWater(t testing.TB, pid int) int64 {
	t.Helper()
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0o600); err != nil {
		t.Fatal(err)
	}
	return highWater(pid)
}

func (s *streamTest) store(ctx context.Context, seed uint64, size int64) error {
	sum := sha256.New()
	body := io.TeeReader(io.LimitReader(rand.NewChaCha8([32]byte{byte(seed)}), size), sum)
	text, status, err := s.post(ctx, body, size)
	if err != nil || status != http.StatusCreated {
		return fmt.Errorf("%d %s, %w", status, text, err)
	}
	var f struct{ State, SHA256 string }
	if err := json.Unmarshal(text, &f); err != nil {
		return err
	}
	if want := hex.EncodeToString(sum.Sum(nil)); f.State != "indexed" || f.SHA256 != want {
		return fmt.Errorf("%+v: want %s", f, want)
	}
	return nil
}

func (s *streamTest) post(ctx context.Context, body io.Reader, size int64) ([]byte, int, error) {
	return s.postAs(ctx, s.Token, body, size)
}

func (s *streamTest) postAs(ctx context.Context, token string, body io.Reader, size int64) ([]byte, int, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+s.apis()[0]+"/v1/files?entity=album", body)
	if err != nil {
		return nil, 0, err
	}
	r.ContentLength = size
	r.Header.Set("Authorization", "Bearer "+token)
	return s.Do(r)
}

// spooled finds temporary files, which have no name any more.
func (s *streamTest) spooled(t testing.TB) (names []string, bytes int64) {
	t.Helper()
	fds := fmt.Sprintf("/proc/%d/fd", s.slots[0].process.Pid)
	entries, err := os.ReadDir(fds)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		fd := filepath.Join(fds, e.Name())
		name, _ := os.Readlink(fd) // empty if it was closed meanwhile
		if info, err := os.Stat(fd); err == nil && strings.Contains(name, "pawl-upload-") {
			names, bytes = append(names, name), bytes+info.Size()
		}
	}
	return names, bytes
}

func (s *streamTest) waitForCleanup(t testing.TB) {
	t.Helper()
	eventually(t, time.Minute, func(context.Context) ([]string, error) {
		names, _ := s.spooled(t)
		return names, nil
	})
}

func (s *streamTest) abortUpload(t *testing.T) {
	t.Helper()
	const half = 4 << 20
	read, write := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		_, _, err := s.post(t.Context(), read, 2*half)
		ended <- err
	}()
	if _, err := io.CopyN(write, rand.NewChaCha8([32]byte{}), half); err != nil {
		t.Fatal(err)
	}
	eventually(t, time.Minute, func(context.Context) (bad []string, err error) {
		if _, n := s.spooled(t); n < half/2 {
			bad = append(bad, fmt.Sprintf("%d bytes are on disk", n))
		}
		return bad, nil
	})
	away := errors.New("the client goes away")
	_ = write.CloseWithError(away)
	if err := <-ended; !errors.Is(err, away) {
		t.Error(err)
	}
	s.waitForCleanup(t)
}

// stallUploads checks that stalled uploads do not block those of another subject.
func (s *streamTest) stallUploads(t *testing.T, part int64) {
	t.Helper()
	pid := s.slots[0].process.Pid
	before := forgetHighWater(t, pid)
	ctx, end := context.WithCancel(t.Context())
	var g errgroup.Group
	defer func() { _ = g.Wait() }() // each ends with ctx
	defer end()
	for i := range 16 {
		token := filesToken(t, fmt.Sprint("hostile", i/4))
		read, write := io.Pipe()
		// A transport returns only after the body's Read has.
		context.AfterFunc(ctx, func() { _ = write.CloseWithError(context.Canceled) })
		g.Go(func() error {
			_, _, err := s.postAs(ctx, token, read, 1<<30)
			return read.CloseWithError(err)
		})
		g.Go(func() error {
			_, err := io.CopyN(write, rand.NewChaCha8([32]byte{byte(i)}), part/16)
			return err
		})
	}
	eventually(t, time.Minute, func(context.Context) (bad []string, err error) {
		if names, n := s.spooled(t); len(names) < 16 || n < part/2 {
			bad = append(bad, fmt.Sprintf("%d bytes of %d files are on disk", n, len(names)))
		}
		return bad, nil
	})
	for _, size := range []int64{1, 1 << 20, part} {
		began := time.Now()
		s.n++
		if err := s.store(ctx, s.n, size); err != nil {
			t.Errorf("a file of %d bytes during 16 streams: %v", size, err)
		}
		t.Logf("during 16 streams, a file of %d bytes took %v", size, time.Since(began).Round(time.Millisecond))
	}
	mb := float64(highWater(pid)-before) / 1e6
	t.Logf("16 streams and these files took %.1f MB of memory", mb)
	if mb > streamMB {
		t.Errorf("16 streams took %.1f MB: at most %d", mb, streamMB)
	}
}

func (s *streamTest) uploadWithoutBucket(t *testing.T) {
	t.Helper()
	client := s.server.Client()
	for info, err := range open(t, s.server).List(t.Context(), inputs, "", "") {
		if err == nil {
			_, err = client.DeleteObject(t.Context(), &s3.DeleteObjectInput{Bucket: aws.String(inputs), Key: &info.Key})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := client.DeleteBucket(t.Context(), &s3.DeleteBucketInput{Bucket: aws.String(inputs)}); err != nil {
		t.Fatal(err)
	}
	text, status, err := s.post(t.Context(), strings.NewReader("abc"), 3)
	if err != nil || status != http.StatusBadGateway {
		t.Errorf("%d %s, %v: want the upload to fail", status, text, err)
	}
	s.waitForCleanup(t)
}
