// Package awslambda runs pipelines in AWS Lambda. A [Handler] processes each invocation with a new Pawl, so
// that nothing runs while the process is frozen:
//
//	lambda.Start(&awslambda.Handler{Config: pawl.Config{Ledger: ledger, Objects: objects, Pipelines: pipelines}})
//
// It also handles scheduled invocations with the payload {"pawl":"sweep"} or {"pawl":"audit"}.
package awslambda

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/source/lambdasource"
)

// Handler implements the Handler interface of aws-lambda-go. It is safe for concurrent use. Do not change
// or copy it after the first invocation.
type Handler struct {
	// Config of each invocation. The Handler sets Sources, Ack, NoSweep, Deadline and Memory. Several
	// machines must be able to share the Ledger.
	Config pawl.Config
	// Dialect defaults to [event.Detect]. Pipelines in event order require an explicit dialect.
	Dialect        event.Dialect
	TrustSequencer bool // see [pawl.Source]
	// Scheduled reports that an invocation with {"pawl":"sweep"} runs every minute. The Handler then
	// acknowledges a message as soon as the ledger has its events; otherwise only when its objects are
	// settled. If no sweep has run for five minutes, it logs an error and works as if Scheduled were false.
	Scheduled bool
	// Flush, if set, is called before each invocation returns, for example to export spans. Its context
	// ends after 2 s, or 200 ms before the deadline of the invocation.
	Flush func(context.Context) error
	// Metrics, if set, receives a line in CloudWatch's embedded metric format at the end of each invocation,
	// with the dimension "pipeline". If several pipelines worked, each has a line. Use os.Stdout, and write
	// logs as lines as well.
	Metrics io.Writer

	once sync.Once
	rows *ledger.Rows
	err  error // of an invalid Config

	writing sync.Mutex // of Metrics
	mu      sync.Mutex
	checked time.Time // last check of the sweeps
	swept   bool      // its result
}

var errNoDeadline = errors.New("awslambda: the context of the invocation has no deadline: is this AWS Lambda?")

// Invoke handles one invocation.
func (h *Handler) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	h.once.Do(h.prepare)
	if h.err != nil {
		return nil, h.err
	}
	deadline, ok := ctx.Deadline()
	if !ok {
		return nil, errNoDeadline
	}
	if h.Flush != nil {
		defer h.flush(ctx, deadline)
	}
	cfg := h.Config
	if h.Metrics != nil {
		m := newInvocationMetrics(cfg.Observer)
		cfg.Observer = m
		defer h.writeMetrics(m)
	}
	var scheduled struct {
		Pawl *string `json:"pawl"`
	}
	if err := json.Unmarshal(payload, &scheduled); err == nil && scheduled.Pawl != nil {
		return h.runSchedule(ctx, cfg, *scheduled.Pawl, deadline)
	}
	return h.runMessages(ctx, cfg, payload, deadline)
}

func (h *Handler) writeMetrics(m *invocationMetrics) {
	lines, err := m.lines(time.Now())
	if err == nil {
		h.writing.Lock()
		defer h.writing.Unlock()
		_, err = h.Metrics.Write(lines)
	}
	if err != nil {
		h.Config.Logger.Warn("the metrics of this invocation are missing", "error", err)
	}
}

func (h *Handler) flush(ctx context.Context, deadline time.Time) {
	ctx, stop := context.WithDeadline(ctx, deadline.Add(-200*time.Millisecond))
	defer stop()
	ctx, end := context.WithTimeout(ctx, 2*time.Second)
	defer end()
	if err := h.Flush(ctx); err != nil {
		h.Config.Logger.WarnContext(ctx, "flush before the end of the invocation failed", "error", err)
	}
}

func (h *Handler) prepare() {
	if h.Config.Logger == nil {
		h.Config.Logger = slog.Default()
	}
	switch {
	case h.Config.Ledger == nil:
		h.err = fmt.Errorf("%w: a ledger is required", pawl.ErrConfig)
		return
	case h.Config.Ledger.Traits().Local:
		h.err = fmt.Errorf("%w: each environment of the function would have its own ledger: use DynamoDB or PostgreSQL", pawl.ErrConfig)
		return
	}
	h.Config.Memory = new(pawl.Memory)
	h.rows = ledger.NewRows(h.Config.Ledger)
}

func (h *Handler) runMessages(ctx context.Context, cfg pawl.Config, payload []byte, deadline time.Time) ([]byte, error) {
	src, err := lambdasource.New(payload, lambdasource.Config{Dialect: h.Dialect, TrustSequencer: h.TrustSequencer, Logger: cfg.Logger})
	if err != nil {
		return nil, err
	}
	cfg.Sources, cfg.Deadline = []pawl.Source{src}, deadline
	cfg.NoSweep, cfg.SweepInterval, cfg.Audit.Every = true, 0, 0
	cfg.Ack = pawl.AckSettled
	if h.Scheduled && h.sweepsRun(ctx) {
		cfg.SweptElsewhere, cfg.Ack = true, pawl.AckStored
	}
	p, err := pawl.New(cfg)
	if err != nil {
		return nil, err
	}
	if err := p.Run(ctx); err != nil {
		return nil, err
	}
	return src.Response(ctx)
}

func (h *Handler) runSchedule(ctx context.Context, cfg pawl.Config, what string, deadline time.Time) ([]byte, error) {
	cfg.Deadline, cfg.NoSweep = deadline, false
	p, err := pawl.New(cfg)
	if err != nil {
		return nil, err
	}
	switch what {
	case "sweep":
		return []byte("null"), h.sweep(ctx, p)
	case "audit":
		return []byte("null"), p.AuditIfDue(ctx)
	}
	return nil, fmt.Errorf("awslambda: the payload asks for %s: want sweep or audit", event.Quote(what))
}

// sweep also records which pipelines are swept.
func (h *Handler) sweep(ctx context.Context, p *pawl.Pawl) error {
	r := &recorder{Handler: h, wake: make(chan struct{}, 1), read: map[string]bool{}}
	done := make(chan struct{})
	var recording sync.WaitGroup
	recording.Go(func() { r.run(ctx, done) })
	complete, err := p.Sweep(ctx, r.note)
	close(done)
	recording.Wait()
	if err == nil && !complete {
		h.Config.Logger.Warn("the sweep reached its deadline before it had processed all due objects; the next one continues")
	}
	return errors.Join(err, r.missing())
}
