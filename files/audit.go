package files

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"
)

// Listed is an object in a listing of the bucket.
type Listed struct {
	Key          string
	Size         int64 // in bytes
	LastModified time.Time
}

// AuditOptions configure an audit.
type AuditOptions struct {
	DryRun bool // report differences without writing
	// Limit permits the immediate removal of all orphans if there are at most Limit; 0 permits none.
	// Set it only if the index is complete.
	Limit int64
	// Orphans contains the orphans of earlier audits of this process. The audit updates it. If it is
	// nil, only Limit permits a removal.
	Orphans Orphans
	// Progress is called for each listed object. It may be nil.
	Progress func(*AuditReport)
}

// AuditReport counts the differences that an audit found.
type AuditReport struct {
	Objects int64 `json:"objects"`
	Rows    int64 `json:"rows"`
	// Moved counts files whose state changed, by new state.
	Moved map[string]int64 `json:"moved"`
	// Leftovers counts objects of Gone and Expired files, and overdue multipart uploads of files with
	// a row.
	Leftovers int64 `json:"leftovers"`
	// Orphans counts objects that are named like a file but have no row, and overdue multipart
	// uploads without a row. OrphanKeys contains the first keys.
	Orphans    int64    `json:"orphans"`
	OrphanKeys []string `json:"orphan_keys,omitempty"`
	Removed    int64    `json:"removed"`
	// Foreign counts objects that are not named like a file, except probes. They are kept.
	Foreign int64 `json:"foreign"`
	// Failed counts files and uploads that could not be checked or repaired.
	Failed int64 `json:"failed"`
	// States counts the files of the index after the audit.
	States map[State]StateCount `json:"-"`
}

// StateCount is the number and total size of the files in a state.
type StateCount struct{ Files, Bytes int64 }

func (r *AuditReport) count(f *File, state State) {
	n := r.States[state]
	r.States[state] = StateCount{n.Files + 1, n.Bytes + f.Size}
}

// Differences returns the number of differences between index and bucket.
func (r *AuditReport) Differences() int64 {
	n := r.Leftovers + r.Orphans
	for _, moved := range r.Moved {
		n += moved
	}
	return n
}

type audit struct {
	*Service
	options AuditOptions
	report  AuditReport
	orphans []Orphan // at most one more than the limit
	nextRow func() (File, error, bool)
	row     *File
	failed  error
}

// Audit compares a listing of the prefix, in key order, with the index, and reconciles files that
// differ. It ignores changes that are due to a timer. If a file fails, Audit continues and returns
// an error at the end. After any other error the counts are incomplete.
func (s *Service) Audit(ctx context.Context, objects iter.Seq2[Listed, error], o AuditOptions) (AuditReport, error) {
	a := &audit{Service: s, options: o, report: AuditReport{Moved: map[string]int64{}, States: map[State]StateCount{}}}
	next, stop := iter.Pull2(s.Index.Scan(ctx))
	defer stop()
	a.nextRow = next
	err := a.merge(ctx, objects)
	if err == nil {
		err = a.checkUploads(ctx)
	}
	if err == nil && !o.DryRun {
		err = a.removeOrphans(ctx)
	}
	if err == nil && a.failed != nil {
		err = fmt.Errorf("files: %d files could not be audited; the first: %w", a.report.Failed, a.failed)
	}
	return a.report, err
}

// recordFailure returns nil, so that the audit continues, unless ctx has ended.
func (a *audit) recordFailure(ctx context.Context, key string, err error) error {
	if err == nil || ctx.Err() != nil {
		return err
	}
	a.report.Failed++
	if a.failed == nil {
		a.failed = fmt.Errorf("%s: %w", key, err)
	}
	return nil
}

func (a *audit) merge(ctx context.Context, objects iter.Seq2[Listed, error]) error {
	if err := a.advance(ctx); err != nil {
		return err
	}
	for o, err := range objects {
		if err != nil {
			return fmt.Errorf("files: list the bucket: %w", err)
		}
		a.report.Objects++
		if a.options.Progress != nil {
			a.options.Progress(&a.report)
		}
		for a.row != nil && a.row.Key < o.Key {
			if err := a.compare(ctx, nil); err != nil {
				return err
			}
		}
		if a.row != nil && a.row.Key == o.Key {
			err = a.compare(ctx, &o)
		} else {
			err = a.checkObjectWithoutRow(ctx, o.Key)
		}
		if err != nil {
			return err
		}
	}
	for a.row != nil {
		if err := a.compare(ctx, nil); err != nil {
			return err
		}
	}
	return nil
}

func (a *audit) advance(ctx context.Context) error {
	a.row = nil
	for {
		f, err, ok := a.nextRow()
		if !ok {
			return err
		}
		a.report.Rows++
		if err == nil {
			a.row = &f
			return nil
		}
		if !errors.Is(err, ErrUnreadable) {
			return err
		}
		if err := a.recordFailure(ctx, f.ID, err); err != nil {
			return err
		}
	}
}

func (a *audit) compare(ctx context.Context, o *Listed) error {
	f, state := a.row, a.row.State
	if f.differs(o) {
		next, err := a.checkFile(ctx, f.ID)
		if errors.Is(err, ErrNotFound) {
			return a.advance(ctx)
		}
		if err := a.recordFailure(ctx, f.Key, err); err != nil {
			return err
		}
		if err == nil {
			state = next
		}
	}
	a.report.count(f, state)
	return a.advance(ctx)
}

// auditClockTolerance is the maximum lead of the store's clock. An audit misses a replacement of
// equal size within this time.
const auditClockTolerance = time.Minute

// differs ignores Deleted and Purging files, because timers handle them.
func (f *File) differs(o *Listed) bool {
	switch f.State {
	case Indexed:
		return o == nil || o.Size != f.Size || o.LastModified.After(f.UpdatedAt.Add(auditClockTolerance))
	case Pending, Lost, Gone, Expired:
		return o != nil
	}
	return false
}

// checkFile returns the new state. It first decides without writing, because most differences no longer
// exist by then.
func (a *audit) checkFile(ctx context.Context, id string) (State, error) {
	f, err := a.Index.Load(ctx, id)
	if err != nil {
		return 0, err
	}
	seen, err := a.Objects.Stat(ctx, f.Key)
	if err != nil {
		return 0, err
	}
	next, _ := f.reconciled(seen, false, &a.Times, a.now())
	leftover := seen.Found && f.objectRemovable()
	if next.State == f.State && !leftover {
		return f.State, nil
	}
	if leftover {
		a.report.Leftovers++
	} else {
		a.report.Moved[next.State.String()]++
	}
	if !a.options.DryRun {
		next, err = a.Reconcile(ctx, id, false)
	}
	return next.State, err
}

// checkObjectWithoutRow checks again, because the row may have been written after the scan.
func (a *audit) checkObjectWithoutRow(ctx context.Context, key string) error {
	id, ours := a.ID(key)
	if !ours {
		if !strings.HasPrefix(key, a.Prefix+ProbeFolder) {
			a.report.Foreign++
		}
		return nil
	}
	_, err := a.checkFile(ctx, id)
	if !errors.Is(err, ErrNotFound) {
		return a.recordFailure(ctx, key, err)
	}
	a.addOrphan(key, "")
	return nil
}

func (a *audit) checkUploads(ctx context.Context) error {
	over := a.now().Add(-a.Times.Parts - a.Times.Upload - a.Times.Skew)
	for u, err := range a.Objects.Uploads(ctx, a.Prefix) {
		if err != nil {
			return err
		}
		id, ours := a.ID(u.Key)
		if !ours || u.Begun.After(over) {
			continue
		}
		if err := a.recordFailure(ctx, u.Key, a.checkOldUpload(ctx, id, &u)); err != nil {
			return err
		}
	}
	return nil
}

// checkOldUpload skips an upload that the row's timer is about to abort, or that is missing in the
// list of its own key.
func (a *audit) checkOldUpload(ctx context.Context, id string, u *OpenUpload) error {
	f, err := a.Index.Load(ctx, id)
	rowless := errors.Is(err, ErrNotFound)
	if err != nil && !rowless || !rowless && !f.DueAt.IsZero() {
		return err
	}
	if open, err := a.isOpen(ctx, u); err != nil || !open {
		return err
	}
	if rowless {
		a.addOrphan(u.Key, u.ID)
		return nil
	}
	a.report.Leftovers++
	if a.options.DryRun {
		return nil
	}
	return a.Objects.Abort(ctx, u.Key, u.ID)
}
