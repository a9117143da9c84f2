package audit

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/internal/format"
	"github.com/pawlhq/pawl/internal/process"
	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/lock"
	"github.com/pawlhq/pawl/worker"
)

// Config configures an Auditor. Ledger, Objects and Pipelines are required.
type Config struct {
	Ledger    ledger.Store
	Objects   bucket.Store
	Pipelines []Pipeline
	TTL       time.Duration   // of the audit lease; default 30 s, minimum 1 s
	Logger    *slog.Logger    // default slog.Default()
	Observer  worker.Observer // optional; receives losses and completed audits
}

// Options select the scope of one audit.
type Options struct {
	Pipelines []string // names of the audited pipelines; empty selects all
	Prefix    string   // the audit covers only keys with this prefix
	// SettleWindow is the longest expected delay of a notification. The audit ignores
	// changes within it.
	SettleWindow time.Duration
	// Listing, if set, replaces the listing of the bucket with its state at AsOf. The audit
	// ignores later changes.
	Listing     Listing
	ListingName string
	AsOf        time.Time
	// Outputs also compares outputs with objects. Redrive resets the attempts of dead and failed
	// rows.
	Outputs, Redrive, DryRun bool
	// AllowRemovals disables the limit on removals.
	AllowRemovals bool
	// Ranges is the number of key ranges listed in parallel; default 8, maximum 16.
	Ranges int
	// Watch, if set, receives the current report during the audit, which waits for it to return.
	Watch func(*Report)

	pipelineNames []string
}

const (
	defaultRanges, maxRanges = 8, 16
	maxHeads                 = 32 // concurrent HEAD requests
	maxExamples              = 20
)

// ErrOptions is returned for invalid Options.
var ErrOptions = errors.New("invalid audit options")

// Auditor audits pipelines. It is safe for concurrent use.
type Auditor struct {
	cfg        Config
	ledger     *ledger.Ledger
	registers  ledger.Registers // nil if the ledger has none
	lease      *lock.Mutex
	observerMu sync.Mutex // serializes calls of the observer
}

// New returns an Auditor.
func New(cfg Config) (*Auditor, error) {
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	a := &Auditor{cfg: cfg, ledger: ledger.New(cfg.Ledger)}
	a.registers, _ = cfg.Ledger.(ledger.Registers)
	if a.registers == nil {
		return a, nil
	}
	var err error
	a.lease, err = lock.OnRegister(a.registers, leaseRegister, lock.Config{TTL: cfg.TTL, Owner: process.Name(), Reason: "audit"})
	return a, err
}

// Run runs an audit. It always returns the report. If the ledger has registers, Run waits for
// other audits, resumes an interrupted audit with the same options, and stores the report. A dry
// run does none of these.
func (a *Auditor) Run(ctx context.Context, o Options) (_ Report, err error) {
	r, err := a.plan(o)
	if err != nil {
		return Report{}, err
	}
	defer func() { a.observeFailure(ctx, err) }()
	if o.DryRun || a.registers == nil {
		err = r.execute(ctx)
	} else {
		err = a.withLease(ctx, true, r.execute)
	}
	return r.finalReport(), err
}

func (a *Auditor) plan(o Options) (*run, error) {
	units, err := a.units(&o)
	if err != nil {
		return nil, err
	}
	r := &run{Auditor: a, o: o, units: units, headSlots: make(chan struct{}, maxHeads)}
	r.initReport()
	return r, nil
}

func (r *run) execute(ctx context.Context) error {
	r.observe(engine.Notice{Kind: engine.AuditRunning, N: 1})
	defer r.observe(engine.Notice{Kind: engine.AuditRunning})
	if r.o.DryRun || r.registers == nil {
		return r.runUnits(ctx)
	}
	return r.runWithCheckpoint(ctx)
}

// A unit is one pass over one pipeline.
type unit struct {
	reportIndex int
	walk        func(p *Pass, ctx context.Context, prefix string, s *Span, commit func(*Counts) error) error
	prefix      string
	// secondPass is set for the pass that writes the removals.
	secondPass bool
	*Pipeline
}

func (a *Auditor) units(o *Options) ([]unit, error) {
	o.Ranges = min(cmp.Or(o.Ranges, defaultRanges), maxRanges)
	o.ListingName = cmp.Or(o.ListingName, "list")
	var units []unit
	for i := range a.cfg.Pipelines {
		p := &a.cfg.Pipelines[i]
		prefix, ok := intersectPrefixes(p.Prefix, o.Prefix)
		if !ok || len(o.Pipelines) > 0 && !slices.Contains(o.Pipelines, p.Name) {
			continue
		}
		at := len(o.pipelineNames)
		o.pipelineNames = append(o.pipelineNames, p.Name)
		units = append(units, p.units(at, prefix, o.Outputs)...)
	}
	for _, name := range o.Pipelines {
		if !slices.ContainsFunc(a.cfg.Pipelines, func(p Pipeline) bool { return p.Name == name }) {
			return nil, fmt.Errorf("%w: no pipeline %s", ErrOptions, event.Quote(name))
		}
	}
	if len(units) == 0 {
		return nil, fmt.Errorf("%w: no pipeline matches the prefix %s", ErrOptions, event.Quote(o.Prefix))
	}
	return units, nil
}

// units returns the passes over a pipeline. Passes that write removals come last, after all
// removals were counted.
func (p *Pipeline) units(at int, prefix string, outputs bool) []unit {
	objects := unit{reportIndex: at, walk: (*Pass).Walk, prefix: prefix, Pipeline: p}
	passes := []unit{objects}
	if outputs = outputs && p.Output != nil; outputs {
		inputs := objects
		inputs.walk = (*Pass).walkInputs
		passes = append(passes, inputs,
			unit{reportIndex: at, walk: (*Pass).walkOutputs, prefix: p.Output.Prefix + prefix[len(p.Prefix):], Pipeline: p})
	}
	objects.secondPass = true
	passes = append(passes, objects)
	if outputs {
		removed := passes[2]
		removed.secondPass = true
		passes = append(passes, removed)
	}
	return passes
}

type run struct {
	*Auditor
	o         Options
	units     []unit
	headSlots chan struct{}

	mu          sync.Mutex
	report      Report
	unitIndex   int
	spans       *spanQueue
	brake       *Brake        // nil in a first pass
	checkpoints *jsonRegister // nil if the audit stores no checkpoints
	resumed     format.Header // of the checkpoint that the audit continues
}

func (r *run) initReport() {
	r.report = Report{
		Started: time.Now().UTC(), By: process.Name(), Listing: r.o.ListingName, Prefix: r.o.Prefix, SettleWindow: r.o.SettleWindow.String(),
		DryRun: r.o.DryRun, Outputs: r.o.Outputs,
	}
	for _, name := range r.o.pipelineNames {
		r.report.Pipelines = append(r.report.Pipelines, PipelineReport{Name: name})
	}
}

func (r *run) finalReport() Report {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.report.Ended.IsZero() {
		r.report.Ended = time.Now().UTC()
	}
	return r.snapshot()
}

func (r *run) snapshot() Report {
	report := r.report
	report.Pipelines = slices.Clone(report.Pipelines)
	report.Examples = slices.Clone(report.Examples)
	return report
}

func (r *run) runUnits(ctx context.Context) error {
	for i := r.unitIndex; i < len(r.units); i++ {
		if !r.startUnit(i) {
			continue
		}
		if err := r.runUnit(ctx); err != nil {
			return fmt.Errorf("audit of pipeline %s: %w", event.Quote(r.units[i].Name), err)
		}
		r.mu.Lock()
		r.spans = nil
		r.mu.Unlock()
	}
	r.observeOutcome()
	return nil
}

// startUnit returns false if the unit has no work.
func (r *run) startUnit(i int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	u := &r.units[i]
	r.unitIndex, r.brake = i, nil
	if c := &r.report.Pipelines[u.reportIndex].Counts; u.secondPass {
		limit := removalLimit(c, r.o.AllowRemovals)
		if c.Removable > limit {
			c.Withheld = c.Removable
		}
		if c.Removable == 0 || c.Removable > limit {
			r.spans = nil
			return false
		}
		r.brake = NewBrake(limit, c.LostRemovals+c.NoInput)
	}
	if r.spans == nil {
		r.spans = newSpanQueue(u.prefix, NewSpan(""))
	}
	return true
}

func (r *run) runUnit(ctx context.Context) error {
	u := &r.units[r.unitIndex]
	g, ctx := errgroup.WithContext(ctx)
	stop := context.AfterFunc(ctx, r.spans.wakeAll)
	defer stop()
	for range r.o.Ranges {
		g.Go(func() error {
			for s := r.spans.next(ctx); s != nil; s = r.spans.next(ctx) {
				err := u.walk(r.newPass(u), ctx, u.prefix, s, func(c *Counts) error { return r.commit(ctx, u, s, c) })
				if err != nil {
					return err
				}
				r.spans.finish(s)
			}
			return context.Cause(ctx)
		})
	}
	return g.Wait()
}

func (r *run) newPass(u *unit) *Pass {
	p := &Pass{
		Pipeline: u.Pipeline, Listing: r.o.Listing, AsOf: r.o.AsOf, Ledger: r.ledger,
		Brake: r.brake, SettleWindow: r.o.SettleWindow, Redrive: r.o.Redrive, DryRun: r.o.DryRun,
		Now: func() time.Time { return time.Now().UTC() }, Nonce: nonce, Each: r.forEach,
		Objects: r.cfg.Objects,
		Found:   func(key ledger.RowKey, what string, repaired bool) { r.recordFinding(u, key, what, repaired) },

		Contradiction: r.recordContradiction,
		Unlistable:    func(ref event.Object, err error) { r.recordUnlistable(u, ref, err) },
	}
	if r.registers != nil {
		p.PurgeWatermark = func(ctx context.Context) (time.Time, error) { return readPurgeWatermark(ctx, r.registers, u.Name) }
	}
	if p.Listing == nil {
		p.Listing = r.cfg.Objects
	}
	return p
}

func nonce() (n ledger.Nonce) {
	_, _ = rand.Read(n[:]) // never fails
	return n
}

// forEach is the Pass.Each of an audit. All passes share its limit on parallel requests.
func (r *run) forEach(n int, do func(i int)) {
	var wg sync.WaitGroup
	for i := range n {
		r.headSlots <- struct{}{}
		wg.Go(func() {
			defer func() { <-r.headSlots }()
			do(i)
		})
	}
	wg.Wait()
}

func (r *run) commit(ctx context.Context, u *unit, s *Span, c *Counts) error {
	r.mu.Lock()
	r.spans.commit(s)
	r.report.Pipelines[u.reportIndex].Add(c)
	r.report.Ranges = max(r.report.Ranges, 1) + r.spans.newSplits()
	if r.o.Watch != nil {
		report := r.snapshot()
		r.o.Watch(&report)
	}
	r.mu.Unlock()
	return r.save(ctx, c.Repaired+c.Redriven > 0)
}

func (r *run) recordFinding(u *unit, key ledger.RowKey, what string, repaired bool) {
	e := Example{What: what, Pipeline: key.Pipeline, Object: key.Object().String()}
	if what == noInput {
		e.Output = u.Output.Of(key).String()
	}
	r.addExample(e)
	r.observe(engine.Notice{Kind: engine.LossFound, Key: key, Detail: what})
	if repaired {
		r.observe(engine.Notice{Kind: engine.LossRepaired, Key: key, Detail: what})
	}
}

func (r *run) addExample(e Example) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.report.Examples) == maxExamples {
		return false
	}
	r.report.Examples = append(r.report.Examples, e)
	return true
}

func (r *run) recordContradiction(key ledger.RowKey, what string) {
	e := Example{What: what, Pipeline: key.Pipeline, Object: key.Object().String()}
	if r.addExample(e) {
		r.cfg.Logger.Warn("listing and HEAD disagree", "pipeline", e.Pipeline, "object", e.Object, "finding", what)
	}
}

func (r *run) recordUnlistable(u *unit, ref event.Object, err error) {
	if r.addExample(Example{What: "not listable by the store: remove it", Pipeline: u.Name, Object: ref.String()}) {
		r.cfg.Logger.Warn("the store rejects every listing that contains this object; the audit skips it", "pipeline", u.Name, "object", ref.String(), "error", err)
	}
}

// observeFailure ignores an audit that its caller stopped.
func (a *Auditor) observeFailure(ctx context.Context, err error) {
	if err != nil && ctx.Err() == nil {
		a.observe(engine.Notice{Kind: engine.AuditFailed, Detail: err.Error()})
	}
}

func (a *Auditor) observe(report engine.Notice) {
	if a.cfg.Observer == nil {
		return
	}
	a.observerMu.Lock()
	defer a.observerMu.Unlock()
	a.cfg.Observer.Observe(report)
}
