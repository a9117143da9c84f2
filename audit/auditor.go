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
	// SettleWindow is the longest expected delay of a notification. The audit ignores objects
	// that changed within this time.
	SettleWindow time.Duration
	// Listing replaces the listing of the bucket with the state at AsOf. The audit ignores
	// objects that changed after AsOf. ListingName is the name in the report.
	Listing     Listing
	ListingName string
	AsOf        time.Time
	// Outputs also compares outputs with objects. Redrive resets the attempts of dead and
	// failed rows. With DryRun the audit reports losses but writes nothing.
	Outputs, Redrive, DryRun bool
	// AllowRemovals lets the audit write any number of removals to the ledger.
	AllowRemovals bool
	// Ranges is the number of key ranges listed in parallel; default 8, maximum 16.
	Ranges int
	// Watch, if set, is called with the current report during the audit. The audit waits until
	// Watch returns.
	Watch func(*Report)

	pipelineNames []string // names of the selected pipelines
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

// Run runs an audit. It returns the report even if it also returns an error. If the ledger has
// registers, Run waits until other audits end, resumes an interrupted audit with the same
// options, and stores the report. A dry run does none of these.
func (a *Auditor) Run(ctx context.Context, o Options) (Report, error) {
	r, err := a.plan(o)
	if err != nil {
		return Report{}, err
	}
	if o.DryRun || a.registers == nil {
		err = r.execute(ctx)
	} else {
		err = a.withLease(ctx, true, r.execute)
	}
	return r.finalReport(), err
}

// plan returns an audit that has not started.
func (a *Auditor) plan(o Options) (*run, error) {
	units, err := a.units(&o)
	if err != nil {
		return nil, err
	}
	r := &run{Auditor: a, o: o, units: units, headSlots: make(chan struct{}, maxHeads)}
	r.initReport()
	return r, nil
}

// execute runs the audit, with checkpoints unless it is a dry run.
func (r *run) execute(ctx context.Context) error {
	if r.o.DryRun || r.registers == nil {
		return r.runUnits(ctx)
	}
	return r.runWithCheckpoint(ctx)
}

// unit is one pass over one pipeline below a prefix.
type unit struct {
	reportIndex int // index of the pipeline in the report
	walk        func(p *Pass, ctx context.Context, prefix string, s *Span, commit func(*Counts) error) error
	prefix      string
	// secondPass is set for the pass that writes the removals. The first pass only counts them.
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

// run is a running audit.
type run struct {
	*Auditor
	o         Options
	units     []unit
	headSlots chan struct{} // semaphore of HEAD requests

	mu          sync.Mutex
	report      Report
	unitIndex   int // index of the current unit
	spans       *spanQueue
	brake       *Brake        // brake of the current unit; nil in a first pass
	checkpoints *jsonRegister // nil if the audit stores no checkpoints
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

// finalReport returns the report with its end time.
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

// runUnits runs the units from the current one on.
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

// startUnit starts or resumes a unit. It returns false if the unit has no work.
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

// runUnit walks the key ranges of the current unit in parallel.
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

// forEach calls do with 0 to n-1 in parallel, within the audit's limit on requests.
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

// commit adds the counts of a part of a span to the report. It saves a checkpoint if one is
// due.
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

// recordFinding reports a loss to the observer and keeps the first ones as examples.
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

// addExample adds an example to the report. It returns false if the report is full.
func (r *run) addExample(e Example) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.report.Examples) == maxExamples {
		return false
	}
	r.report.Examples = append(r.report.Examples, e)
	return true
}

// recordContradiction adds an object whose listing and HEAD disagree to the examples.
func (r *run) recordContradiction(key ledger.RowKey, what string) {
	e := Example{What: what, Pipeline: key.Pipeline, Object: key.Object().String()}
	if r.addExample(e) {
		r.cfg.Logger.Warn("listing and HEAD disagree", "pipeline", e.Pipeline, "object", e.Object, "finding", what)
	}
}

// recordUnlistable adds an object that the store cannot list to the examples.
func (r *run) recordUnlistable(u *unit, ref event.Object, err error) {
	if r.addExample(Example{What: "not listable by the store: remove it", Pipeline: u.Name, Object: ref.String()}) {
		r.cfg.Logger.Warn("the store rejects every listing that contains this object; the audit skips it", "pipeline", u.Name, "object", ref.String(), "error", err)
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
