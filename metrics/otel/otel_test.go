//go:build unix

package otel_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coltracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/action/execaction"
	"github.com/pawlhq/pawl/action/httpaction"
	"github.com/pawlhq/pawl/awslambda"
	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/bucket/membucket"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/metrics/otel"
	"github.com/pawlhq/pawl/source"
	"github.com/pawlhq/pawl/source/sourcetest"
	"github.com/pawlhq/pawl/source/webhooksource"
	"github.com/pawlhq/pawl/store"
	"github.com/pawlhq/pawl/store/memory"
)

const (
	traceID = "0af7651916cd43dd8448eb211c80319c"
	sender  = "00-" + traceID + "-b7ad6b7169203331-01"
)

// collector is an OTLP receiver.
type collector struct {
	*testing.T
	mu    sync.Mutex
	spans []*tracepb.Span
}

// newCollector points the environment at a collector. Spans leave the tracer only when it is flushed.
func newCollector(t *testing.T) (*collector, *otel.Tracer) {
	t.Helper()
	c := &collector{T: t}
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL)
	for _, name := range []string{"OTEL_BSP_SCHEDULE_DELAY", "OTEL_BSP_EXPORT_TIMEOUT", "OTEL_EXPORTER_OTLP_TIMEOUT"} {
		t.Setenv(name, "3600000")
	}
	tracer, err := otel.New(t.Context(), otel.Config{Version: "1"})
	if err != nil || tracer == nil {
		t.Fatalf("%v, %v", tracer, err)
	}
	t.Cleanup(func() { _ = tracer.Close(context.Background()) })
	return c, tracer
}

func (c *collector) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var in coltracepb.ExportTraceServiceRequest
	if err := errors.Join(err, proto.Unmarshal(body, &in)); err != nil || r.URL.Path != "/v1/traces" {
		c.Errorf("%s: %v", r.URL, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, resource := range in.ResourceSpans {
		for _, scope := range resource.ScopeSpans {
			c.spans = append(c.spans, scope.Spans...)
		}
	}
}

func (c *collector) named(name string) *tracepb.Span {
	c.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.spans, func(s *tracepb.Span) bool { return s.Name == name })
	if i < 0 {
		c.Fatalf("no span %q in %v", name, c.spans)
	}
	return c.spans[i]
}

// children also checks that each child lies within its parent.
func (c *collector) children(parent *tracepb.Span) map[string]*tracepb.Span {
	c.Helper()
	found := map[string]*tracepb.Span{}
	for _, s := range c.spans {
		if !bytes.Equal(s.ParentSpanId, parent.SpanId) {
			continue
		}
		found[s.Name] = s
		if s.StartTimeUnixNano < parent.StartTimeUnixNano || s.EndTimeUnixNano > parent.EndTimeUnixNano || !bytes.Equal(s.TraceId, parent.TraceId) {
			c.Errorf("%s is outside of its parent %s", s.Name, parent.Name)
		}
	}
	return found
}

func attributes(s *tracepb.Span) map[string]string {
	all := map[string]string{}
	for _, a := range s.Attributes {
		if a.Key != "pawl.fence" {
			all[a.Key] = strings.Trim(strings.SplitN(a.Value.String(), ":", 2)[1], `"`)
		}
	}
	return all
}

func traceparent(s *tracepb.Span) string { return fmt.Sprintf("00-%x-%x-01", s.TraceId, s.SpanId) }

func newObjects(t *testing.T, key string) bucket.Store {
	t.Helper()
	objects := membucket.New(time.Now, []string{"photos", "out"})
	o := bucket.Object{Body: strings.NewReader("x"), Size: 1}
	if _, err := objects.Put(t.Context(), event.Object{Bucket: "photos", Key: key}, o, bucket.Condition{}); err != nil {
		t.Fatal(err)
	}
	return objects
}

func TestSpansOfAnAttempt(t *testing.T) {
	c, tracer := newCollector(t)
	var requested string
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { requested = r.Header.Get("Traceparent") }))
	defer receiver.Close()
	post, err := httpaction.New(httpaction.Config{URL: receiver.URL})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "env")
	command, err := execaction.New(execaction.Config{Command: []string{"sh", "-c", `printf %s "$TRACEPARENT" > "$0"`, file}})
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	hook, err := webhooksource.New(webhooksource.Config{Listen: "127.0.0.1:0", Logger: logger})
	if err != nil {
		t.Fatal(err)
	}
	match := pawl.Match{Bucket: "photos"}
	p, err := pawl.New(pawl.Config{
		Ledger: memory.New(), Objects: newObjects(t, "a\xff"), Sources: []pawl.Source{hook}, Logger: logger, Tracer: tracer,
		Lease: pawl.Lease{TTL: time.Hour},
		Pipelines: []pawl.Pipeline{
			{Name: "write", Match: match, To: &pawl.Output{Bucket: "out"}, Handler: pawl.HandlerFunc(func(_ context.Context, task *pawl.Task) error {
				w, err := task.Output("text/plain")
				if err == nil {
					_, err = io.WriteString(w, "y")
				}
				return err
			})},
			{Name: "post", Match: match, Handler: post},
			{Name: "exec", Match: match, Handler: command},
			{Name: "fail", Match: match, Handler: pawl.HandlerFunc(func(context.Context, *pawl.Task) error { return pawl.Permanent(errors.New("bad \xff")) })},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var running sync.WaitGroup
	running.Go(func() {
		if err := p.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	<-hook.Ready()
	req, err := http.NewRequest(http.MethodPost, "http://"+hook.Addr().String()+"/events", strings.NewReader(sourcetest.Payload("a%FF")))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Traceparent", sender)
	resp, err := http.DefaultClient.Do(req) // answered when all objects are settled or dead
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Errorf("%v, %v", resp, err)
	}
	stop()
	running.Wait()
	if err := tracer.Close(t.Context()); err != nil {
		t.Fatal(err)
	}

	delivery := c.named("process /events")
	if parent := fmt.Sprintf("%x %x", delivery.TraceId, delivery.ParentSpanId); parent != traceID+" b7ad6b7169203331" {
		t.Errorf("the parent of the delivery is %s", parent)
	}
	if diff := cmp.Diff(map[string]string{
		"messaging.operation.type": "process", "messaging.operation.name": "process", "messaging.system": "webhook",
		"messaging.destination.name": "/events", "pawl.delivery.items": "4",
	}, attributes(delivery)); diff != "" {
		t.Errorf("delivery (-want +got):\n%s", diff)
	}
	acts := map[string]*tracepb.Span{}
	for pipeline, want := range map[string]struct {
		result, steps string
		failed        bool
	}{
		"write": {"committed", "act claim complete pin publish read", false},
		"post":  {"committed", "act claim complete read", false},
		"exec":  {"committed", "act claim complete read", false},
		"fail":  {"dead", "act claim complete read", true},
	} {
		attempt := c.named("attempt " + pipeline)
		if len(attempt.Links) != 1 || !bytes.Equal(attempt.Links[0].SpanId, delivery.SpanId) || !bytes.Equal(attempt.ParentSpanId, delivery.SpanId) {
			t.Errorf("%s: not linked to the delivery: %v", pipeline, attempt)
		}
		steps := c.children(attempt)
		acts[pipeline] = steps["act"]
		names := []string{}
		for name, s := range steps {
			names = append(names, name)
			if failed := s.Status.GetCode() == tracepb.Status_STATUS_CODE_ERROR; failed != (want.failed && name == "act") {
				t.Errorf("%s: status of %s: %v", pipeline, name, s.Status)
			}
		}
		slices.Sort(names)
		if got := strings.Join(names, " "); got != want.steps {
			t.Errorf("%s: steps %s, want %s", pipeline, got, want.steps)
		}
		wantAttributes := map[string]string{
			"messaging.operation.type": "process", "messaging.operation.name": "attempt", "messaging.system": "pawl",
			"messaging.destination.name": pipeline, "aws.s3.bucket": "photos", "aws.s3.key": "a\uFFFD",
			"pawl.attempt": "1", "pawl.taken_over": "false", "pawl.result": want.result,
		}
		if want.failed {
			wantAttributes["error.type"] = "dead"
			if s := attempt.Status; s.GetCode() != tracepb.Status_STATUS_CODE_ERROR || s.Message != "bad \uFFFD" {
				t.Errorf("%s: status %v", pipeline, s)
			}
		}
		if diff := cmp.Diff(wantAttributes, attributes(attempt)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", pipeline, diff)
		}
	}
	if want := traceparent(acts["post"]); requested != want {
		t.Errorf("the receiver got traceparent %q, want %q", requested, want)
	}
	if b, err := os.ReadFile(file); err != nil || string(b) != traceparent(acts["exec"]) {
		t.Errorf("the command got TRACEPARENT %q, want %q (%v)", b, traceparent(acts["exec"]), err)
	}
	if n := strings.Count(log.String(), "trace_id="+traceID); n != 4 {
		t.Errorf("%d log lines have the trace ID, want 4:\n%s", n, &log)
	}
}

func TestSamplerOfTheEnvironment(t *testing.T) {
	t.Setenv("OTEL_TRACES_SAMPLER", "traceidratio")
	t.Setenv("OTEL_TRACES_SAMPLER_ARG", "0.01")
	c, tracer := newCollector(t)
	for _, last := range []string{"0000000000000001", "ffffffffffffffff"} {
		_, end := tracer.StartDelivery(&source.Message{Traceparent: "00-0af7651916cd43dd" + last + "-b7ad6b7169203331-01"}, 1)
		end(nil)
	}
	if err := tracer.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if id := fmt.Sprintf("%x", c.named("process").TraceId); id != "0af7651916cd43dd0000000000000001" || len(c.spans) != 1 {
		t.Errorf("sampled %d spans, the first of %s", len(c.spans), id)
	}
}

// shared claims to be shared by several machines.
type shared struct{ store.Store }

func (s shared) Traits() store.Traits {
	t := s.Store.Traits()
	t.Volatile, t.Local = false, false
	return t
}

func TestInvocationFlushes(t *testing.T) {
	c, tracer := newCollector(t)
	flush := func(context.Context) error { return tracer.Flush(t.Context()) } // without the time limit
	h := awslambda.Handler{Flush: flush, Config: pawl.Config{
		Ledger: shared{memory.New()}, Objects: newObjects(t, "a"), Tracer: tracer, Logger: slog.New(slog.DiscardHandler),
		Pipelines: []pawl.Pipeline{{Name: "log", Match: pawl.Match{Bucket: "photos"}, Handler: pawl.HandlerFunc(func(context.Context, *pawl.Task) error { return nil })}},
	}}
	ctx, stop := context.WithTimeout(t.Context(), 10*time.Minute)
	defer stop()
	body := strings.ReplaceAll(sourcetest.Payload("a"), `"`, `\"`)
	payload := `{"Records":[{"messageId":"m","eventSource":"aws:sqs","eventSourceARN":"arn:aws:sqs:eu-west-1:123456789012:q","body":"` + body +
		`","messageAttributes":{"traceparent":{"dataType":"String","stringValue":"` + sender + `"}}}]}`
	if out, err := h.Invoke(ctx, []byte(payload)); err != nil || string(out) != `{"batchItemFailures":[]}` {
		t.Fatalf("%s, %v", out, err)
	}
	attempt := c.named("attempt log")
	if got := attributes(c.named("process q")); fmt.Sprintf("%x", attempt.TraceId) != traceID || got["messaging.message.id"] != "m" || got["messaging.system"] != "aws_sqs" {
		t.Errorf("attempt %v, delivery %v", attempt, got)
	}
}

func TestEnvironmentDecides(t *testing.T) {
	for _, tt := range []struct {
		env string
		on  bool
		err string
	}{
		{"", false, ""},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1", true, ""},
		{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://127.0.0.1:1/v1/traces", true, ""},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1 OTEL_SDK_DISABLED=true", false, ""},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1 OTEL_TRACES_EXPORTER=none", false, ""},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1 OTEL_TRACES_EXPORTER=zipkin", false, ""},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1 OTEL_EXPORTER_OTLP_PROTOCOL=grpc", false, ""},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1 OTEL_RESOURCE_ATTRIBUTES=broken", false, "OTEL_RESOURCE_ATTRIBUTES"},
	} {
		t.Run(tt.env, func(t *testing.T) {
			for _, entry := range strings.Fields(tt.env) {
				name, value, _ := strings.Cut(entry, "=")
				t.Setenv(name, value)
			}
			var log strings.Builder
			tracer, err := otel.New(t.Context(), otel.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
			unsupported := strings.Contains(tt.env, "zipkin") || strings.Contains(tt.env, "grpc")
			if strings.Contains(log.String(), "no traces: want the exporter otlp") != unsupported {
				t.Errorf("log: %s", &log)
			}
			if (tracer != nil) != tt.on || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%v, %v", tracer, err)
			}
			if err := errors.Join(tracer.Flush(t.Context()), tracer.Close(t.Context())); err != nil {
				t.Error(err)
			}
		})
	}
}
