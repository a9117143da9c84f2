package audit

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/pawlhq/pawl/cell"
	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/internal/format"
	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/lock"
)

const (
	leaseRegister      = "audit/lease"
	checkpointRegister = "audit/progress"
	reportsRegister    = "audit/reports"
)

const (
	maxReports         = 30              // fewer if they are large
	checkpointInterval = 5 * time.Second // minimum, unless a repair was made
	maxCheckpointAge   = 24 * time.Hour  // an older audit starts over
	shutdownTimeout    = 5 * time.Second // bounds the last checkpoint and the release of the lease
)

// checkpoint is stored in the ledger: do not change its field names.
type checkpoint struct {
	format.Header
	Options   string         `json:"options"` // digest of the options
	Report    registerReport `json:"report"`
	Unit      int            `json:"unit"`
	Remaining []bounds       `json:"left"`
	Done      bool           `json:"done,omitzero"`
}

// reports is the value of reportsRegister. Each is a storedReport, newest first.
type reports struct {
	format.Header
	Reports []jsontext.Value `json:"reports"`
}

// watermark is the value of watermarkRegister.
type watermark struct {
	format.Header
	At time.Time `json:"at"`
}

// jsonRegister is a register with a JSON value and only one writer at a time.
type jsonRegister struct {
	cell.Cell

	mu        sync.Mutex
	version   string
	lastWrite time.Time
}

func (k *jsonRegister) read(ctx context.Context, into format.Record) error {
	now, err := k.Read(ctx)
	if err != nil {
		return err
	}
	k.version = now.Version
	if err := format.Decode(now.Body, into); err != nil {
		return fmt.Errorf("decode %s, which a newer version of Pawl may have written: %w", k, err)
	}
	return nil
}

// write replaces the value that read returned. It fails if another process wrote the register
// meanwhile.
func (k *jsonRegister) write(ctx context.Context, from format.Record) error {
	value, err := format.Encode(from)
	if err != nil {
		return err
	}
	w := cell.Replace(k, &k.version, value, func(now []byte) bool { return bytes.Equal(now, value) })
	w.Pace = func(_ context.Context, _ int, answer error) error { return answer }
	if _, err := w.Run(ctx); err != nil {
		return fmt.Errorf("write %s: %w", k, err)
	}
	k.lastWrite = time.Now()
	return nil
}

// withLease runs f under the audit lease. The context of f ends when the lease is lost. If wait
// is false and another process holds the lease, withLease returns lock.ErrHeld.
func (a *Auditor) withLease(ctx context.Context, wait bool, f func(ctx context.Context) error) error {
	l, err := a.lease.TryAcquire(ctx)
	if errors.Is(err, lock.ErrHeld) && wait {
		a.cfg.Logger.Info("waiting for another audit to end", "holder", err)
		l, err = a.lease.Acquire(ctx)
	}
	if err != nil {
		return fmt.Errorf("one audit at a time: %w", err)
	}
	err = f(l.Context())
	if lost := context.Cause(l.Context()); errors.Is(lost, lock.ErrLost) {
		err = errors.Join(lost, err)
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer stop()
	if failed := l.Release(ctx); failed != nil && err == nil {
		a.cfg.Logger.Warn("could not release the audit lease; other processes wait until it expires", "error", failed)
	}
	return err
}

func (r *run) runWithCheckpoint(ctx context.Context) error {
	r.checkpoints = &jsonRegister{Cell: ledger.Cell(r.registers, checkpointRegister)}
	var before checkpoint
	if err := r.checkpoints.read(ctx, &before); err != nil {
		return err
	}
	if !before.Done && before.Options == r.digest() && time.Since(before.Report.Started) < maxCheckpointAge && before.Unit < len(r.units) {
		r.resume(&before)
	}
	err := r.runUnits(ctx)
	late, stop := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer stop()
	if err != nil {
		return errors.Join(err, r.saveNow(late, false))
	}
	report := r.finalReport()
	report.Examples = nil
	return errors.Join(r.saveReport(late, &report), r.saveNow(late, true))
}

func (r *run) digest() string {
	text := fmt.Sprintf("%q %q %v %v %v %v", r.o.ListingName, r.o.Prefix, r.o.SettleWindow, r.o.Outputs, r.o.Redrive, r.o.AllowRemovals)
	for i := range r.units {
		u := &r.units[i]
		text += fmt.Sprintf(" %q %q %q %v %v", u.Name, u.Bucket, u.prefix, u.EachVersion, u.secondPass)
		if u.Output != nil {
			text += fmt.Sprintf(" %q %q", u.Output.Bucket, u.Output.Prefix)
		}
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

func (r *run) resume(p *checkpoint) {
	r.mu.Lock()
	defer r.mu.Unlock()
	by := r.report.By
	r.report, r.unitIndex = Report(p.Report), p.Unit
	r.report.By, r.report.Resumed, r.report.Ended = by, p.Report.Resumed+1, time.Time{}
	var spans []*Span
	for _, b := range p.Remaining {
		s := NewSpan(string(b.After))
		s.end = string(b.End)
		spans = append(spans, s)
	}
	r.spans = newSpanQueue(r.units[r.unitIndex].prefix, spans...)
	r.resumed = p.Header
	r.cfg.Logger.Info("resuming an interrupted audit", "started", r.report.Started, "resumed", r.report.Resumed)
}

func (r *run) save(ctx context.Context, found bool) error {
	if r.checkpoints == nil {
		return nil
	}
	r.checkpoints.mu.Lock()
	due := found || time.Since(r.checkpoints.lastWrite) > checkpointInterval
	r.checkpoints.mu.Unlock()
	if !due {
		return nil
	}
	return r.saveNow(ctx, false)
}

func (r *run) saveNow(ctx context.Context, done bool) error {
	r.checkpoints.mu.Lock()
	defer r.checkpoints.mu.Unlock()
	r.mu.Lock()
	p := checkpoint{Header: r.resumed, Options: r.digest(), Report: registerReport(r.snapshot()), Unit: r.unitIndex, Done: done}
	if r.spans != nil {
		p.Remaining = r.spans.remaining()
	}
	r.mu.Unlock()
	err := r.checkpoints.write(ctx, &p)
	if errors.Is(err, ledger.ErrInvalidRegister) { // hundreds of pipelines, or very long keys
		r.checkpoints.lastWrite = time.Now()
		r.cfg.Logger.Warn("the checkpoint of the audit is too large to save: an interrupted audit will start over", "error", err)
		return nil
	}
	return err
}

func (r *run) saveReport(ctx context.Context, report *Report) error {
	k := &jsonRegister{Cell: ledger.Cell(r.registers, reportsRegister)}
	var stored reports
	if err := k.read(ctx, &stored); err != nil {
		return err
	}
	text, err := json.Marshal(registerReport(*report))
	if err != nil {
		return err
	}
	all := slices.Insert(stored.Reports, 0, jsontext.Value(text))
	for n := min(len(all), maxReports); ; n /= 2 {
		stored.Reports = all[:n]
		err := k.write(ctx, &stored)
		if !errors.Is(err, ledger.ErrInvalidRegister) || n <= 1 {
			return err
		}
	}
}

// Reports returns the stored reports of the last audits, newest first. A ledger without registers
// has none.
func (a *Auditor) Reports(ctx context.Context) ([]Report, error) {
	if a.registers == nil {
		return nil, nil
	}
	return StoredReports(ctx, a.registers)
}

// StoredReports returns the stored reports of the last audits, newest first.
func StoredReports(ctx context.Context, r ledger.Registers) (all []Report, err error) {
	k := &jsonRegister{Cell: ledger.Cell(r, reportsRegister)}
	var stored reports
	err = k.read(ctx, &stored)
	for _, text := range stored.Reports {
		var one registerReport
		if err := json.Unmarshal(text, &one); err != nil {
			return all, fmt.Errorf("decode %s: %w", k, err)
		}
		all = append(all, Report(one))
	}
	return all, err
}

// Unfinished returns the last saved report of an audit that runs or was interrupted, or nil.
func Unfinished(ctx context.Context, r ledger.Registers) (*Report, error) {
	k := &jsonRegister{Cell: ledger.Cell(r, checkpointRegister)}
	var p checkpoint
	if err := k.read(ctx, &p); err != nil || p.Done || p.Options == "" {
		return nil, err
	}
	return (*Report)(&p.Report), nil
}

func (r *run) observeOutcome() {
	for i := range r.report.Pipelines {
		p := &r.report.Pipelines[i]
		if p.Withheld > 0 {
			r.observe(engine.Notice{
				Kind: engine.RemovalsWithheld, Key: ledger.RowKey{Pipeline: p.Name}, N: int(p.Withheld),
				Detail: fmt.Sprintf("%d objects are missing from the bucket, of %d rows with an existing object", p.Withheld, p.Created),
			})
		}
	}
	total := r.report.Total()
	r.observe(engine.Notice{Kind: engine.Audited, N: int(total.Found()), Took: time.Since(r.report.Started)})
}
