package pawl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawlhq/pawl/audit"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/worker"
)

// Pawl runs pipelines. Create one with [New].
type Pawl struct {
	cfg     Config
	claimBy time.Time // when Run stops claiming; zero without a Deadline
	worker  *worker.Worker
	auditor *audit.Auditor // nil: no object store
	ending  atomic.Bool    // Run shuts down
}

// New returns a Pawl, which does nothing before Run. Its error matches [ErrConfig].
func New(cfg Config) (*Pawl, error) {
	times := cfg.setDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	pipelines := make([]*worker.Pipeline, len(cfg.Pipelines))
	for i := range cfg.Pipelines {
		pipelines[i] = cfg.Pipelines[i].build()
	}
	auditor, err := cfg.auditor()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	rows, objects, outages := cfg.Memory.load(&cfg)
	return &Pawl{cfg: cfg, claimBy: times.claimBy, auditor: auditor, worker: worker.New(worker.Config{
		Ledger: rows, Objects: objects, Outages: outages, Pipelines: pipelines, Policy: cfg.policy(),
		Concurrency: cfg.Concurrency, MaxBacklogEvents: cfg.MaxBacklogEvents, MaxBytes: cfg.MaxBytes,
		SweepInterval: cfg.SweepInterval, Outage: cfg.Retry.Outage, ShutdownTimeout: cfg.ShutdownTimeout, LedgerTimeout: times.ledgerTimeout, FailAfter: times.failAfter, AckSettled: cfg.Ack == AckSettled, Logger: cfg.Logger, Observer: cfg.Observer, Tracer: cfg.Tracer,
	})}, nil
}

// Run works until ctx ends, or until every source has ended and every object in the messages is settled or
// dead. With NoSweep, it does not wait for returned messages. Without sources, it sweeps until ctx ends.
// When Run ends, it lets running handlers finish within ShutdownTimeout, and releases the other attempts.
//
// Run returns the error of the first source that failed, of Config.Check, or of a ledger that became
// unusable. It must be called only once. The caller closes the ledger and the object store.
func (p *Pawl) Run(ctx context.Context) error {
	ctx, end := p.untilDeadline(ctx)
	defer end()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	defer context.AfterFunc(ctx, func() { p.ending.Store(true) })()
	var work sync.WaitGroup
	var failed error
	work.Go(func() {
		failed = p.work(ctx, stop)
		stop(failed)
	})
	if p.cfg.Audit.Every > 0 {
		work.Go(func() { p.auditor.RunSchedule(ctx, p.schedule()) })
	}
	err := p.runSources(ctx, stop)
	if err == nil {
		p.worker.WaitSettled(ctx)
	}
	stop(nil)
	work.Wait()
	p.cfg.Memory.save(p.worker.Outages())
	return errors.Join(err, failed)
}

// If Config.Check fails, the worker only returns the deliveries that it has received.
func (p *Pawl) work(ctx context.Context, stop context.CancelCauseFunc) error {
	if p.cfg.Check == nil {
		return p.worker.Run(ctx)
	}
	for _, ready := range p.listeners() {
		select {
		case <-ready:
		case <-ctx.Done():
		}
	}
	err := p.cfg.Check(ctx)
	if ctx.Err() != nil {
		err = nil
	}
	if err != nil {
		stop(err)
	}
	return errors.Join(err, p.worker.Run(ctx))
}

func (p *Pawl) listeners() (all []<-chan struct{}) {
	for _, s := range p.cfg.Sources {
		if l, ok := s.(interface{ Ready() <-chan struct{} }); ok {
			all = append(all, l.Ready())
		}
	}
	return all
}

func (p *Pawl) runSources(ctx context.Context, stop context.CancelCauseFunc) error {
	if len(p.cfg.Sources) == 0 {
		<-ctx.Done()
		return nil
	}
	errs := make([]error, len(p.cfg.Sources))
	var wg sync.WaitGroup
	for i, s := range p.cfg.Sources {
		wg.Go(func() {
			err := s.Run(ctx, p.worker)
			if err != nil && ctx.Err() == nil {
				errs[i] = err
				stop(err)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// Stats counts a Pawl's activity since New.
type Stats struct {
	Raised, Duplicate, Stale                       int64 // events, once for each pipeline
	Claimed, TakenOver                             int64 // attempts started
	Completed, NothingToDo, Failed, Released, Lost int64 // attempts ended
	Died                                           int64 // objects that became dead
	// Unsettled is the number of objects in messages that are neither settled nor dead. With NoSweep,
	// objects of returned messages do not count.
	Unsettled    int64
	Running      int64 // attempts that run now
	RunningBytes int64 // total size of their objects
	Backlog      int64 // events that count towards MaxBacklogEvents
}

// Stats returns the current counts.
func (p *Pawl) Stats() Stats {
	s := p.worker.Stats()
	return Stats{
		Raised: s.Raised, Duplicate: s.Duplicate, Stale: s.Stale,
		Claimed: s.Claimed, TakenOver: s.TakenOver,
		Completed: s.Completed, NothingToDo: s.NothingToDo, Failed: s.Failed, Released: s.Released, Lost: s.Lost,
		Died: s.Died, Unsettled: int64(s.Unsettled), Running: int64(s.Running), RunningBytes: s.RunningBytes, Backlog: int64(s.Backlog),
	}
}

// WithDefaults returns the configuration with the defaults of fields that are not set.
func (c Config) WithDefaults() Config {
	c.setDefaults()
	return c
}

func (c *Config) setDefaults() invocation {
	d := ledger.DefaultPolicy()
	c.Lease.TTL = cmp.Or(c.Lease.TTL, d.TTL)
	c.Lease.Skew = cmp.Or(c.Lease.Skew, d.Skew)
	c.Lease.LateWriteWindow = cmp.Or(c.Lease.LateWriteWindow, d.LateWriteWindow)
	c.Retry.Attempts = cmp.Or(c.Retry.Attempts, d.Attempts)
	c.Retry.Base = cmp.Or(c.Retry.Base, d.Base)
	c.Retry.Max = cmp.Or(c.Retry.Max, max(d.Max, c.Retry.Base))
	c.Retry.Outage = cmp.Or(c.Retry.Outage, 24*time.Hour)
	c.Concurrency = cmp.Or(c.Concurrency, 16)
	c.MaxBacklogEvents = cmp.Or(c.MaxBacklogEvents, 1000)
	c.MaxBytes = cmp.Or(c.MaxBytes, 1<<30)
	if !c.NoSweep {
		c.SweepInterval = cmp.Or(c.SweepInterval, time.Second)
	}
	if c.Ledger != nil && c.Ledger.Traits().Volatile {
		c.Ack = AckSettled
	}
	c.ShutdownTimeout = cmp.Or(c.ShutdownTimeout, 20*time.Second)
	c.Audit.RowRetention = cmp.Or(c.Audit.RowRetention, d.RowRetention)
	c.Audit.MaxDelay = cmp.Or(c.Audit.MaxDelay, 24*time.Hour)
	if slices.ContainsFunc(c.Pipelines, func(p Pipeline) bool { return p.Order == EventOrder }) {
		c.Audit.SettleWindow = cmp.Or(c.Audit.SettleWindow, c.Audit.MaxDelay+time.Hour)
	}
	c.Audit.SettleWindow = cmp.Or(c.Audit.SettleWindow, 12*time.Hour)
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c.divideTime(time.Now())
}

func (c *Config) policy() ledger.Policy {
	return ledger.Policy{
		TTL: c.Lease.TTL, LeaseEnd: c.Deadline, Skew: c.Lease.Skew, LateWriteWindow: c.Lease.LateWriteWindow,
		Attempts: c.Retry.Attempts, Base: c.Retry.Base, Max: c.Retry.Max,
		RowRetention: c.Audit.RowRetention, PurgeSettled: c.Audit.PurgeSettled,
	}
}

func (p Pipeline) build() *worker.Pipeline {
	w := &worker.Pipeline{
		Name: p.Name, Match: p.Match.match, Handler: p.Handler,
		Order: p.Order, EachVersion: p.EachVersion, EventuallyConsistent: p.EventuallyConsistent, Transactional: p.Transactional, Concurrency: p.Concurrency,
	}
	if l, ok := p.Handler.(Limited); ok && w.Concurrency == 0 {
		w.Concurrency = l.Concurrency()
	}
	if p.To != nil {
		w.Output = p.OutputOf
	}
	return w
}

func (m Match) match(o event.Object) bool {
	if o.Bucket != m.Bucket || !strings.HasPrefix(o.Key, m.Prefix) {
		return false
	}
	for _, s := range m.Suffix {
		if strings.HasSuffix(o.Key, s) {
			return true
		}
	}
	return len(m.Suffix) == 0
}

// OutputOf returns the output of a row's object. The pipeline must have outputs.
func (p *Pipeline) OutputOf(k ledger.RowKey) event.Object {
	// The key after the prefix is copied unchanged, so that two inputs never share an output. A version ID
	// contains no "@".
	key := p.To.Prefix + strings.TrimPrefix(k.Key, p.Match.Prefix)
	if p.EachVersion {
		key += "@" + k.VersionID
	}
	return event.Object{Bucket: p.To.Bucket, Key: key + p.To.Suffix}
}
