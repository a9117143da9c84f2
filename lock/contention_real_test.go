package lock_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/bucket/s3bucket"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/lock"
	"github.com/pawlhq/pawl/proof/servertest"
)

type countingProxy struct {
	url      string
	requests atomic.Int64
	puts     atomic.Int64
	// every drop-th PUT loses its response; 0 means none
	drop int64
}

func newCountingProxy(t *testing.T, server *servertest.Server, drop int64) *countingProxy {
	t.Helper()
	to, err := url.Parse(server.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	c := &countingProxy{drop: drop}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(to)
		r.Out.Host = r.In.Host // the signature covers the host
	}}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.requests.Add(1)
		if r.Method == http.MethodPut && c.drop > 0 && c.puts.Add(1)%c.drop == 0 {
			proxy.ServeHTTP(discardWriter{http.Header{}}, r)
			panic(http.ErrAbortHandler) // breaks the connection
		}
		proxy.ServeHTTP(w, r)
	})}
	var wg sync.WaitGroup
	wg.Go(func() { _ = s.Serve(listener) })
	t.Cleanup(func() {
		_ = s.Close()
		wg.Wait()
	})
	c.url = "http://" + listener.Addr().String()
	return c
}

type discardWriter struct{ header http.Header }

func (n discardWriter) Header() http.Header       { return n.header }
func (discardWriter) Write(b []byte) (int, error) { return len(b), nil }
func (discardWriter) WriteHeader(int)             {}

func (c *countingProxy) store(t *testing.T, server *servertest.Server) bucket.Store {
	t.Helper()
	s, err := s3bucket.New(t.Context(), s3bucket.Config{
		Endpoint: c.url, Region: server.Region, PathStyle: true, AccessKey: server.AccessKey, SecretKey: server.SecretKey,
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

const contenders = 64

// TestContention lets 64 contenders hold one lock for 10 ms each. They share a Mutex, or have their
// own connections, or use a busy loop for comparison. A file that only one contender can create
// checks the exclusion.
func TestContention(t *testing.T) {
	servertest.Each(t, servertest.Options{}, func(t *testing.T, server *servertest.Server) {
		name := server.NewBucket(t)
		c := newCountingProxy(t, server, 0)
		b, err := lock.Open(t.Context(), c.store(t, server), name, "")
		if err != nil {
			t.Fatal(err)
		}
		shared, err := b.Mutex("shared", lock.Config{})
		if err != nil {
			t.Fatal(err)
		}
		together, _ := c.perHandOver(t, "sharing a Mutex", func(_ int, critical func()) error {
			return withLease(t.Context(), shared, critical)
		})
		apart, took := c.perHandOver(t, "each by itself", func(i int, critical func()) error {
			m, err := lock.Proved(c.store(t, server), name).Mutex("contended", lock.Config{Owner: fmt.Sprint(i)})
			if err != nil {
				return err
			}
			return withLease(t.Context(), m, critical)
		})
		published := newBusyLoop(t, c, server, name)
		loops, _ := c.perHandOver(t, "the busy loop", func(_ int, critical func()) error {
			return published.contend(t.Context(), critical)
		})
		if together > 1.5 {
			t.Errorf("contenders that share a Mutex send %.1f requests per hand-over, want 1", together)
		}
		// Each contender acquires and releases the lock, and sometimes loses a race for it. While
		// it waits, it reads the lock about once a second.
		if most := 8 + took.Seconds(); apart > most {
			t.Errorf("contenders with their own Mutex send %.1f requests per hand-over, want at most %.1f", apart, most)
		}
		if loops < 20*together {
			t.Errorf("the busy loop sends %.1f requests per hand-over, want at least 20 times %.1f", loops, together)
		}
	})
}

func (c *countingProxy) perHandOver(t *testing.T, who string, contend func(i int, critical func()) error) (float64, time.Duration) {
	t.Helper()
	c.requests.Store(0)
	took := runContenders(t, contend)
	n := float64(c.requests.Load()) / contenders
	t.Logf("%-16s %5.1f requests per hand-over, %v in total", who+":", n, took)
	return n, took
}

func runContenders(t *testing.T, contend func(i int, critical func()) error) time.Duration {
	t.Helper()
	path := filepath.Join(t.TempDir(), "held")
	start := time.Now()
	var wg sync.WaitGroup
	for i := range contenders {
		wg.Go(func() {
			err := contend(i, func() {
				f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL, 0o600)
				if err != nil {
					t.Errorf("two at a time: %v", err)
					return
				}
				<-time.After(10 * time.Millisecond)
				_ = f.Close()
				if err := os.Remove(path); err != nil {
					t.Error(err)
				}
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	return time.Since(start).Round(time.Millisecond)
}

func withLease(ctx context.Context, m *lock.Mutex, critical func()) error {
	l, err := m.Acquire(ctx)
	if err != nil {
		return err
	}
	critical()
	return l.Release(ctx)
}

// busyLoop is a published lock: create an object in a loop until it succeeds, and later delete it.
// The requests are signed in advance, so that the client does not limit the rate.
type busyLoop struct {
	client      http.Client
	put, remove string
}

func newBusyLoop(t *testing.T, c *countingProxy, server *servertest.Server, name string) *busyLoop {
	t.Helper()
	options := server.Client().Options()
	options.BaseEndpoint = aws.String(c.url)
	sign, key := s3.NewPresignClient(s3.New(options)), ".lock"
	put, err := sign.PresignPutObject(t.Context(), &s3.PutObjectInput{Bucket: &name, Key: &key})
	if err != nil {
		t.Fatal(err)
	}
	remove, err := sign.PresignDeleteObject(t.Context(), &s3.DeleteObjectInput{Bucket: &name, Key: &key})
	if err != nil {
		t.Fatal(err)
	}
	l := &busyLoop{http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: contenders}}, put.URL, remove.URL}
	t.Cleanup(l.client.CloseIdleConnections)
	return l
}

func (l *busyLoop) contend(ctx context.Context, critical func()) error {
	for {
		status, err := l.send(ctx, http.MethodPut, l.put)
		if err != nil {
			return err
		}
		switch status {
		case http.StatusOK:
			critical()
			_, err := l.send(ctx, http.MethodDelete, l.remove)
			return err
		case http.StatusPreconditionFailed, http.StatusConflict:
		default:
			return fmt.Errorf("the store answers %d", status)
		}
	}
}

func (l *busyLoop) send(ctx context.Context, method, to string) (int, error) {
	r, err := http.NewRequestWithContext(ctx, method, to, nil)
	if err != nil {
		return 0, err
	}
	if method == http.MethodPut {
		r.Header.Set("If-None-Match", "*")
	}
	answer, err := l.client.Do(r)
	if err != nil {
		return 0, err
	}
	_, _ = io.Copy(io.Discard, answer.Body) // so that the connection can be reused
	return answer.StatusCode, answer.Body.Close()
}

// TestDroppedAnswers loses the response to every third PUT, and breaks the connection.
func TestDroppedAnswers(t *testing.T) {
	servertest.Each(t, servertest.Options{}, func(t *testing.T, server *servertest.Server) {
		c := newCountingProxy(t, server, 3)
		name := server.NewBucket(t)
		b := lock.Proved(c.store(t, server), name)
		m, err := b.Mutex("alone", lock.Config{Owner: "alone"})
		if err != nil {
			t.Fatal(err)
		}
		var token int64
		for range 60 {
			l, err := m.TryAcquire(t.Context())
			if err != nil {
				t.Fatalf("no other process wants the lock: %v", err)
			}
			if l.Token() <= token {
				t.Fatalf("token %d after %d", l.Token(), token)
			}
			token = l.Token()
			if err := l.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for range 15 {
					if err := increment(t.Context(), b); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		if got := strings.Count(readCount(t, c.store(t, server), name), "+"); got != 60 {
			t.Errorf("%d of 60 updates were applied", got)
		}
		runContenders(t, func(i int, critical func()) error {
			if i >= 8 {
				return nil
			}
			m, err := lock.Proved(c.store(t, server), name).Mutex("contended", lock.Config{Owner: fmt.Sprint(i)})
			if err != nil {
				return err
			}
			return withLease(t.Context(), m, critical)
		})
		t.Logf("of %d PUTs every third had no answer", c.puts.Load())
	})
}

func increment(ctx context.Context, b *lock.Bucket) error {
	_, err := b.Update(ctx, "count", func(_ context.Context, c lock.Content) (lock.Content, error) {
		c.Body = append(c.Body, '+')
		return c, nil
	}, lock.UpdateConfig{Create: true})
	return err
}

func readCount(t *testing.T, s bucket.Store, name string) string {
	t.Helper()
	_, r, err := s.Get(t.Context(), event.Object{Bucket: name, Key: "count"})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
