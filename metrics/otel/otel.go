// Package otel records deliveries and attempts as OpenTelemetry spans, and exports them by OTLP over
// HTTP. Programs that do not import it do not depend on OpenTelemetry.
//
//	tracer, err := otel.New(ctx, otel.Config{})
//	…
//	defer tracer.Close(context.Background())
//	if tracer != nil {
//		cfg.Tracer = tracer
//	}
//
// docs/OPERATING.md lists the spans and their attributes.
package otel

import (
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/logthrottle"
	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/source"
)

// Config describes the process. The OTEL_ environment variables configure everything else.
type Config struct {
	Version string       // of the program
	Logger  *slog.Logger // for failed exports; default slog.Default()
}

// Tracer implements [pawl.Tracer].
type Tracer struct {
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
}

var _ pawl.Tracer = (*Tracer)(nil)

// New returns a tracer, or nil if the environment has no endpoint for traces, switches them off, or asks
// for an exporter other than OTLP over HTTP. It sets OpenTelemetry's global error handler.
func New(ctx context.Context, c Config) (*Tracer, error) {
	env := func(name string) string {
		return cmp.Or(os.Getenv("OTEL_EXPORTER_OTLP_TRACES_"+name), os.Getenv("OTEL_EXPORTER_OTLP_"+name))
	}
	kind := cmp.Or(os.Getenv("OTEL_TRACES_EXPORTER"), "otlp")
	if env("ENDPOINT") == "" || kind == "none" || strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") {
		return nil, nil
	}
	logger := cmp.Or(c.Logger, slog.Default())
	if p := env("PROTOCOL"); kind != "otlp" || p != "" && !strings.HasPrefix(p, "http/") {
		logger.Warn("no traces: want the exporter otlp and the protocol http/protobuf", "OTEL_TRACES_EXPORTER", kind, "OTEL_EXPORTER_OTLP_PROTOCOL", p)
		return nil, nil
	}
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, fmt.Errorf("traces: %w", err)
	}
	about, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithHost(),
		resource.WithAttributes(semconv.ServiceName("pawl"), semconv.ServiceVersion(c.Version)), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("traces: OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	warning := logthrottle.New(logger)
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		warning.Log(context.Background(), "traces: some spans may be missing", "error", err)
	}))
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(about))
	return &Tracer{provider: provider, tracer: provider.Tracer("github.com/pawlhq/pawl")}, nil
}

// Flush exports all ended spans. On a nil Tracer it does nothing.
func (t *Tracer) Flush(ctx context.Context) error {
	if t == nil {
		return nil
	}
	return t.provider.ForceFlush(ctx)
}

// Close exports all ended spans and stops the tracer. On a nil Tracer it does nothing.
func (t *Tracer) Close(ctx context.Context) error {
	if t == nil {
		return nil
	}
	return t.provider.Shutdown(ctx)
}

// StartDelivery implements [pawl.Tracer].
func (t *Tracer) StartDelivery(m *source.Message, items int) (traceparent string, end func(error)) {
	ctx, span := t.tracer.Start(trace.ContextWithRemoteSpanContext(context.Background(), parse(m.Traceparent)), "process", consumer)
	if span.IsRecording() {
		span.SetName(name("process", m.Destination))
		span.SetAttributes(semconv.MessagingOperationTypeProcess, semconv.MessagingOperationName("process"),
			semconv.MessagingSystemKey.String(cmp.Or(m.System, "other")), attribute.Int("pawl.delivery.items", items))
		setText(span, semconv.MessagingDestinationNameKey, m.Destination)
		setText(span, semconv.MessagingMessageIDKey, m.ID)
	}
	return t.Traceparent(ctx), endOf(span)
}

// StartAttempt implements [pawl.Tracer]. The attempt is in the trace of its first delivery, so that a
// sampler decides about both at once.
func (t *Tracer) StartAttempt(ctx context.Context, c *ledger.Claim, asked time.Time, deliveries []string) (_ context.Context, traceparent string, end func(result string, err error)) {
	if len(deliveries) > 0 {
		parent := parse(deliveries[0])
		if parent.IsValid() && !parent.IsSampled() {
			return ctx, deliveries[0], nil
		}
		ctx = trace.ContextWithRemoteSpanContext(ctx, parent)
	}
	links := make([]trace.Link, len(deliveries))
	for i, d := range deliveries {
		links[i].SpanContext = parse(d)
	}
	ctx, span := t.tracer.Start(ctx, "attempt "+c.Key.Pipeline, consumer, trace.WithTimestamp(asked), trace.WithLinks(links...))
	if !span.IsRecording() {
		return ctx, t.Traceparent(ctx), nil
	}
	_, claim := t.tracer.Start(ctx, "claim", trace.WithTimestamp(asked))
	claim.End()
	span.SetAttributes(semconv.MessagingOperationTypeProcess, semconv.MessagingOperationName("attempt"),
		semconv.MessagingSystemKey.String("pawl"), semconv.MessagingDestinationName(c.Key.Pipeline),
		attribute.Int("pawl.attempt", c.Number), attribute.Int64("pawl.fence", c.Fence), attribute.Bool("pawl.taken_over", c.TakenOver))
	setText(span, semconv.AWSS3BucketKey, c.Key.Bucket)
	setText(span, semconv.AWSS3KeyKey, c.Key.Key)
	setText(span, "pawl.version_id", c.Key.VersionID)
	return ctx, t.Traceparent(ctx), func(result string, err error) {
		span.SetAttributes(attribute.String("pawl.result", result))
		if err != nil {
			span.SetAttributes(semconv.ErrorTypeKey.String(result))
		}
		endOf(span)(err)
	}
}

// StartStep implements [pawl.Tracer].
func (t *Tracer) StartStep(ctx context.Context, name string) (context.Context, func(error)) {
	ctx, span := t.tracer.Start(ctx, name)
	return ctx, endOf(span)
}

// Traceparent implements [pawl.Tracer].
func (t *Tracer) Traceparent(ctx context.Context) string {
	c := trace.SpanContextFromContext(ctx)
	traceID, spanID := c.TraceID(), c.SpanID()
	b := append(make([]byte, 0, traceparentLen), "00-"...)
	b = append(hex.AppendEncode(b, traceID[:]), '-')
	b = append(hex.AppendEncode(b, spanID[:]), '-')
	return string(hex.AppendEncode(b, []byte{byte(c.TraceFlags())}))
}

var consumer = trace.WithSpanKind(trace.SpanKindConsumer)

const traceparentLen = 55

// parse returns an invalid context if traceparent is invalid. The context of an unsampled delivery is
// frequent, and takes no allocation.
func parse(traceparent string) trace.SpanContext {
	if traceparent == "" {
		return trace.SpanContext{}
	}
	if len(traceparent) == traceparentLen && traceparent[:3] == "00-" && traceparent[35] == '-' && traceparent[52:] == "-00" {
		traceID, _ := trace.TraceIDFromHex(traceparent[3:35])
		spanID, _ := trace.SpanIDFromHex(traceparent[36:52])
		return trace.NewSpanContext(trace.SpanContextConfig{TraceID: traceID, SpanID: spanID, Remote: true})
	}
	return trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier{"traceparent": traceparent}))
}

func name(operation, destination string) string {
	return strings.TrimSpace(operation + " " + valid(destination))
}

// Protocol buffers carry only UTF-8.
func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

func setText(span trace.Span, key attribute.Key, value string) {
	if value != "" {
		span.SetAttributes(key.String(valid(value)))
	}
}

func endOf(span trace.Span) func(error) {
	return func(err error) {
		if err != nil {
			span.SetStatus(codes.Error, valid(err.Error()))
		}
		span.End()
	}
}
