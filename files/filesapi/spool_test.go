package filesapi_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lestrrat-go/jwx/v3/jwt"

	"github.com/pawlhq/pawl/files"
	"github.com/pawlhq/pawl/files/filesapi"
	"github.com/pawlhq/pawl/internal/virtualtime"
	"github.com/pawlhq/pawl/store/memory"
)

type memoryObjects struct {
	files.Objects
	mu      sync.Mutex
	objects map[string]files.ObjectInfo
}

func (o *memoryObjects) Sign(context.Context, *files.File, time.Time) (files.SignedRequest, error) {
	return files.SignedRequest{URL: "https://store.example/"}, nil
}

func (o *memoryObjects) Put(_ context.Context, f *files.File, body io.ReadSeeker) error {
	sum := sha256.New()
	n, err := io.Copy(sum, body)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.objects[f.Key] = files.ObjectInfo{Found: true, Size: n, SHA256: [32]byte(sum.Sum(nil)), Date: time.Now()}
	return err
}

func (o *memoryObjects) Stat(_ context.Context, key string) (files.ObjectInfo, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	seen := o.objects[key]
	seen.Date = time.Now()
	return seen, nil
}

// blockingBody sends a number of bytes and then blocks until ctx ends.
type blockingBody struct {
	ctx  context.Context
	left int
}

func (e *blockingBody) Read(p []byte) (int, error) {
	if e.left == 0 {
		<-e.ctx.Done()
		return 0, e.ctx.Err()
	}
	n := min(len(p), e.left)
	e.left -= n
	return n, nil
}

func (e *blockingBody) Close() error { return nil }

// The largest file has 2 MiB, so there is space for 32 MiB.
func spoolAPI(t *testing.T, dir string) func(subject string, body io.Reader) *httptest.ResponseRecorder {
	service := &files.Service{Index: files.NewIndex(memory.New()), Objects: &memoryObjects{objects: map[string]files.ObjectInfo{}}, Times: files.DefaultTimes()}
	tokens := must(filesapi.NewTokens(must(filesapi.Secret(secret)), filesapi.Claims{}))
	h := must(filesapi.New(filesapi.Config{
		Files: service, Tokens: tokens, Cursors: secret, MaxSize: 2 << 20, Spool: dir, Logger: slog.New(slog.DiscardHandler),
	}))
	return func(subject string, body io.Reader) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), "POST", "/v1/files?entity=e", body)
		r.ContentLength = -1
		r.Header.Set("Authorization", "Bearer "+token(t, "write:*", func(j jwt.Token) error { return j.Set(jwt.SubjectKey, subject) }))
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
}

// Other subjects that use their whole share do not block small files. Up to eight do not block a
// file of the maximum size.
func TestSpoolSharesPerSubject(t *testing.T) {
	for _, subjects := range []int{1, 4, 8, 40} {
		t.Run(fmt.Sprint(subjects), func(t *testing.T) {
			dir := t.TempDir()
			virtualtime.Test(t, func(t *testing.T) {
				post := spoolAPI(t, dir)
				ctx, end := context.WithCancel(t.Context())
				var sending sync.WaitGroup
				var mu sync.Mutex
				refused := 0
				for i := range 4 * subjects {
					sending.Go(func() {
						if got := post(fmt.Sprint("hostile", i/4), &blockingBody{ctx, 2 << 20}); got.Code == http.StatusInsufficientStorage {
							mu.Lock()
							defer mu.Unlock()
							refused++
						}
					})
				}
				synctest.Wait()
				if full := subjects >= 8; full != (refused > 0) { // four subjects get a seventh each, which is enough for their bodies
					t.Errorf("%d streams of %d subjects are refused", refused, subjects)
				}
				for range 50 {
					if got := post("ann", strings.NewReader("x")); got.Code != http.StatusCreated {
						t.Errorf("a small file: %d %s", got.Code, got.Body)
					}
				}
				if got := post("ann", bytes.NewReader(make([]byte, 1<<20))); got.Code != http.StatusCreated {
					t.Errorf("a file of 1 MiB: %d %s", got.Code, got.Body)
				}
				if got := post("ann", bytes.NewReader(make([]byte, 2<<20))); subjects <= 8 && got.Code != http.StatusCreated {
					t.Errorf("the largest file: %d %s", got.Code, got.Body)
				}
				end()
				sending.Wait()
				for i := range 4 {
					sending.Go(func() {
						if got := post("bob", bytes.NewReader(make([]byte, 2<<20))); got.Code != http.StatusCreated {
							t.Errorf("afterwards, file %d: %d %s", i, got.Code, got.Body)
						}
					})
				}
				sending.Wait()
			})
		})
	}
}

func TestSpoolWithoutDisk(t *testing.T) {
	post := spoolAPI(t, filepath.Join(t.TempDir(), "none"))
	if got := post("ann", strings.NewReader("x")); got.Code != http.StatusInsufficientStorage || got.Header().Get("Retry-After") == "" {
		t.Errorf("%d %s", got.Code, got.Body)
	}
}
