package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/bucket/s3bucket"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/proof/servertest"
)

// upper changes the content, so that a missing effect cannot look like a copy.
func upper(ctx context.Context, t *pawl.Task) error {
	in, err := t.Open(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	b, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	out, err := t.Output("text/plain")
	if err != nil {
		return err
	}
	_, err = out.Write(bytes.ToUpper(b))
	return err
}

// The names are constant because each server belongs to one test.
const (
	inputs  = "inputs"
	outputs = "outputs"
)

type testBuckets struct {
	store       *s3bucket.Store
	want        map[string]string   // key → content
	puts        map[string][]string // key → ETags of all contents, in order
	changes     []string
	unsupported []string
}

func newTestBuckets(t *testing.T, s *servertest.Server) *testBuckets {
	t.Helper()
	for _, name := range []string{inputs, outputs} {
		if _, err := s.Client().CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: aws.String(name)}); err != nil {
			t.Fatal(err)
		}
	}
	return &testBuckets{store: open(t, s), want: map[string]string{}, puts: map[string][]string{}}
}

func open(t testing.TB, s *servertest.Server) *s3bucket.Store {
	t.Helper()
	store, err := s3bucket.New(t.Context(), s3bucket.Config{
		Endpoint: s.Endpoint, Region: s.Region, PathStyle: true, AccessKey: s.AccessKey, SecretKey: s.SecretKey,
	})
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func (w *testBuckets) put(t *testing.T, key, content string) {
	t.Helper()
	o := bucket.Object{Body: strings.NewReader(content), Size: int64(len(content)), ContentType: "text/plain"}
	etag, err := w.store.Put(t.Context(), event.Object{Bucket: inputs, Key: key}, o, bucket.Condition{})
	switch {
	case errors.Is(err, bucket.ErrInvalid):
		w.unsupported = append(w.unsupported, key)
	case err != nil:
		t.Fatalf("put %q: %v", key, err)
	default:
		w.want[key] = content
		w.puts[key] = append(w.puts[key], etag)
		w.recordChange("put", key, etag)
	}
}

func (w *testBuckets) recordChange(what, key, etag string) {
	w.changes = append(w.changes, fmt.Sprintf("%s %s %q %s", time.Now().Format("15:04:05.000"), what, key, etag))
}

func (w *testBuckets) changesOf(key string) string {
	var b strings.Builder
	for _, c := range w.changes {
		if strings.Contains(c, strconv.Quote(key)) {
			b.WriteString("\n  " + c)
		}
	}
	return b.String()
}

func (w *testBuckets) remove(t *testing.T, key string) {
	t.Helper()
	if err := w.store.Delete(t.Context(), event.Object{Bucket: inputs, Key: key}, bucket.Condition{}); err != nil {
		t.Fatalf("remove %q: %v", key, err)
	}
	delete(w.want, key)
	w.recordChange("removed", key, "")
}

func (w *testBuckets) outputDiffs(ctx context.Context, led ledger.Store, prefix string, f func(string) string) ([]string, error) {
	diffs, err := w.outputDiffsByKey(ctx, led, prefix, f)
	return slices.Sorted(maps.Values(diffs)), err
}

func (w *testBuckets) outputDiffsByKey(ctx context.Context, led ledger.Store, prefix string, f func(string) string) (map[string]string, error) {
	diffs := map[string]string{}
	seen := map[string]bool{}
	for info, err := range w.store.List(ctx, outputs, prefix, "") {
		if err != nil {
			return nil, err
		}
		key := strings.TrimPrefix(info.Key, prefix)
		content, ok := w.want[key]
		if !ok {
			diffs[key] = "output without input: " + describeRow(ctx, led, key)
			continue
		}
		seen[key] = true
		_, body, err := w.store.Get(ctx, event.Object{Bucket: outputs, Key: info.Key})
		if err != nil {
			return nil, err
		}
		got, err := io.ReadAll(body)
		if err := errors.Join(err, body.Close()); err != nil {
			return nil, err
		}
		if string(got) != f(content) {
			diffs[key] = fmt.Sprintf("output is %.40q, want %.40q: %s", got, f(content), describeRow(ctx, led, key))
		}
	}
	for key := range w.want {
		if !seen[key] {
			diffs[key] = "input without output: " + describeRow(ctx, led, key)
		}
	}
	return diffs, nil
}

// notifyMismatched sends notifications about objects whose output is wrong, as an audit would raise them.
func (w *testBuckets) notifyMismatched(t *testing.T, led ledger.Store, addr, auth string) {
	t.Helper()
	bad, err := w.outputDiffsByKey(t.Context(), led, "up/", strings.ToUpper)
	if err != nil {
		t.Fatal(err)
	}
	for key, why := range bad {
		t.Logf("lost: %s", why)
		body := fmt.Sprintf(`{"account":"test","action":"PutObject","bucket":%q,"object":{"key":%s},"eventTime":"2026-01-02T03:04:05Z"}`, inputs, quoteJSON(key))
		post(t, "http://"+addr+"/events", auth, body)
	}
}

func unsettled(ctx context.Context, s ledger.Store) (bad []string, rows int, err error) {
	for row, err := range s.Scan(ctx, ledger.Range{}) {
		if err != nil {
			return nil, 0, err
		}
		rows++
		if !row.Settled() || row.Dead || row.Held() {
			bad = append(bad, describe(row))
		}
	}
	return bad, rows, nil
}

func describeRow(ctx context.Context, s ledger.Store, key string) string {
	rows, err := s.Load(ctx, []ledger.RowKey{{Pipeline: "upper", Bucket: inputs, Key: key}})
	if err != nil || len(rows) == 0 {
		return fmt.Sprintf("%q has no row (%v)", key, err)
	}
	return describe(rows[0])
}

func describe(row ledger.Row) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s is %s, due %s: %s", row.RowKey, row.State(time.Now()), row.Due().Format("15:04:05.000"), row.LastError)
	for _, h := range row.History {
		fmt.Fprintf(&b, "\n  %s %s %s", h.At.Format("15:04:05.000"), h.What, h.Note)
	}
	return b.String()
}

func eventually(t testing.TB, limit time.Duration, check func(context.Context) ([]string, error)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	var last []string
	for {
		found, err := check(ctx)
		if err == nil && len(found) == 0 {
			return
		}
		if ctx.Err() == nil {
			last = found
			if err != nil {
				last = []string{err.Error()}
			}
		}
		select {
		case <-ctx.Done():
			if n := len(last); n > 10 {
				last = append(last[:10], fmt.Sprintf("and %d more", n-10))
			}
			t.Fatalf("after %s:\n%s", limit, strings.Join(last, "\n"))
		case <-tick.C:
		}
	}
}

// writtenRows are the rows of a ledger whose objects the test has written. A garbled notification can
// name another key, which the store may reject, so that its row is dead.
type writtenRows struct {
	ledger.Store
	*testBuckets
}

func (w writtenRows) Scan(ctx context.Context, r ledger.Range) iter.Seq2[ledger.Row, error] {
	return func(yield func(ledger.Row, error) bool) {
		for row, err := range w.Store.Scan(ctx, r) {
			if err == nil && len(w.puts[row.Key]) == 0 {
				continue
			}
			if !yield(row, err) {
				return
			}
		}
	}
}

func waitUntilQuiet(t *testing.T, led ledger.Store) {
	t.Helper()
	eventually(t, 5*time.Minute, func(ctx context.Context) ([]string, error) {
		bad, rows, err := unsettled(ctx, led)
		if err == nil && rows == 0 {
			bad = []string{"the ledger is empty"}
		}
		if err != nil || len(bad) > 0 {
			return bad, err
		}
		for row, err := range led.Scan(ctx, ledger.Range{}) {
			if err != nil || time.Since(row.UpdatedAt) < 3*time.Second {
				return []string{"still busy"}, err
			}
		}
		return nil, nil
	})
}

func quoteJSON(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		return `""`
	}
	return string(b)
}

func post(t *testing.T, url, auth, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", auth)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("POST: %s", resp.Status)
	}
}

func logTo(t *testing.T) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
}

type lateStore struct {
	store atomic.Pointer[s3bucket.Store]
}

var errNotYet = errors.New("the object store has not been started")

func (l *lateStore) Head(ctx context.Context, ref event.Object) (bucket.Info, error) {
	if s := l.store.Load(); s != nil {
		return s.Head(ctx, ref)
	}
	return bucket.Info{}, errNotYet
}

func (l *lateStore) Get(ctx context.Context, ref event.Object) (bucket.Info, io.ReadCloser, error) {
	if s := l.store.Load(); s != nil {
		return s.Get(ctx, ref)
	}
	return bucket.Info{}, nil, errNotYet
}

func (l *lateStore) Put(ctx context.Context, ref event.Object, o bucket.Object, c bucket.Condition) (string, error) {
	if s := l.store.Load(); s != nil {
		return s.Put(ctx, ref, o, c)
	}
	return "", errNotYet
}

func (l *lateStore) Delete(ctx context.Context, ref event.Object, c bucket.Condition) error {
	if s := l.store.Load(); s != nil {
		return s.Delete(ctx, ref, c)
	}
	return errNotYet
}

func (l *lateStore) List(ctx context.Context, name, prefix, after string) iter.Seq2[bucket.Info, error] {
	if s := l.store.Load(); s != nil {
		return s.List(ctx, name, prefix, after)
	}
	return func(yield func(bucket.Info, error) bool) { yield(bucket.Info{}, errNotYet) }
}
