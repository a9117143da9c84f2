package sqssource_test

import (
	"bytes"
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawlhq/pawl/source"
	"github.com/pawlhq/pawl/source/sqssource"
)

// fake works in a synctest bubble. It delivers each added message once.
type fake struct {
	began time.Time
	// refuse, if set, may fail a request, or an entry of a batch with the code alone.
	refuse func(action, handle string) (status int, code string)

	mu       sync.Mutex
	bodies   map[string]string // by receipt handle
	waiting  []string
	more     chan struct{}
	recorded []string
	polls    int
}

func newFake(bodies ...string) *fake {
	f := &fake{began: time.Now(), bodies: map[string]string{}, more: make(chan struct{})}
	for i, body := range bodies {
		f.add(fmt.Sprintf("m%d", i), body)
	}
	return f
}

func (f *fake) add(handle, body string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.bodies[handle] = body
	f.waiting = append(f.waiting, handle)
	close(f.more)
	f.more = make(chan struct{})
}

func (f *fake) update(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

func (f *fake) refused(action, handle string) (status int, code string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.refuse(action, handle)
}

func (f *fake) state() (waiting, polls int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.waiting), f.polls
}

func (f *fake) record(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.recorded = append(f.recorded, fmt.Sprintf("%s ", time.Since(f.began).Round(100*time.Millisecond))+fmt.Sprintf(format, args...))
}

// requests omits polls and the checks at startup.
func (f *fake) requests() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	requests := slices.DeleteFunc(f.recorded, func(s string) bool { return strings.HasSuffix(s, "none") || strings.HasSuffix(s, "none=0") })
	f.recorded = nil
	return requests
}

func (f *fake) do(r *http.Request) (*http.Response, error) {
	_, action, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	var in struct {
		MaxNumberOfMessages, WaitTimeSeconds, VisibilityTimeout int
		Entries                                                 []entry
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		return nil, err
	}
	if f.refuse != nil {
		if status, code := f.refused(action, ""); status != 0 {
			return reply(status, map[string]any{"__type": "com.amazonaws.sqs#" + code, "message": "the queue says so"}), nil
		}
	}
	if action == "ReceiveMessage" {
		return f.receive(r, in.MaxNumberOfMessages, time.Duration(in.WaitTimeSeconds)*time.Second)
	}
	var done, failed []map[string]any
	request := action
	for _, e := range in.Entries {
		request += " " + e.ReceiptHandle
		if e.VisibilityTimeout != nil {
			request += fmt.Sprintf("=%d", *e.VisibilityTimeout)
		}
		if f.refuse != nil {
			if _, code := f.refused(action, e.ReceiptHandle); code != "" {
				failed = append(failed, map[string]any{"Id": e.ID, "Code": code, "SenderFault": code != "InternalError"})
				continue
			}
		}
		done = append(done, map[string]any{"Id": e.ID})
	}
	f.record("%s", request)
	return reply(http.StatusOK, map[string]any{"Successful": done, "Failed": failed}), nil
}

type entry struct {
	ID                string `json:"Id"`
	ReceiptHandle     string
	VisibilityTimeout *int
}

func (f *fake) receive(r *http.Request, limit int, wait time.Duration) (*http.Response, error) {
	f.mu.Lock()
	f.polls++
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.polls--
	}()
	timeout := time.NewTimer(wait)
	defer timeout.Stop()
	for {
		f.mu.Lock()
		handles, more := f.waiting[:min(limit, len(f.waiting))], f.more
		f.waiting = f.waiting[len(handles):]
		f.mu.Unlock()
		if len(handles) > 0 {
			return reply(http.StatusOK, map[string]any{"Messages": f.messages(handles)}), nil
		}
		select {
		case <-more:
		case <-timeout.C:
			return reply(http.StatusOK, map[string]any{}), nil
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
}

func (f *fake) messages(handles []string) (all []map[string]any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, h := range handles {
		sum := md5.Sum([]byte(f.bodies[h]))
		all = append(all, map[string]any{"MessageId": h, "ReceiptHandle": h, "Body": f.bodies[h], "MD5OfBody": hex.EncodeToString(sum[:])})
	}
	return all
}

func reply(status int, v any) *http.Response {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return &http.Response{
		StatusCode: status, Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}},
		Body: io.NopCloser(bytes.NewReader(b)), ContentLength: int64(len(b)),
	}
}

type log struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

func logger(l *log) *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

func (l *log) lines(text string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.buf.String()) {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}

func (f *fake) run(t *testing.T, sink source.Sink, l *log, set ...func(*sqssource.Source)) *running {
	t.Helper()
	cfg := sqssource.Config{URL: "https://sqs.eu-west-1.amazonaws.com/123456789012/uploads", Logger: logger(l)}
	return run(t, cfg, sink, append([]func(*sqssource.Source){func(s *sqssource.Source) { s.SetServer(f.do) }}, set...)...)
}
