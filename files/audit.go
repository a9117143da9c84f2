package files

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"
)

// Listed is an object as a listing of the bucket has it.
type Listed struct {
	Key          string
	Size         int64 // in bytes
	LastModified time.Time
}

// AuditOptions configure an audit.
type AuditOptions struct {
	DryRun bool // report differences, and write nothing
	// Limit, if above 0, removes objects and uploads without a row at once, if there are at
	// most this many. It is for an operator who knows that the index is no old copy.
	Limit int64
	// Orphans is what earlier audits of this process saw without a row. The audit updates
	// it. Nil: it removes none of them without Limit.
	Orphans Orphans
	// Progress, if set, is called for each object of the listing.
	Progress func(*AuditReport)
}

// AuditReport counts the differences that an audit found.
type AuditReport struct {
	Objects int64 `json:"objects"`
	Rows    int64 `json:"rows"`
	// Moved counts the files that a look has moved, by the state that they have now.
	Moved map[string]int64 `json:"moved"`
	// Leftovers are objects of files that are gone or expired, which a look removes, and
	// uploads in parts that nothing will complete.
	Leftovers int64 `json:"leftovers"`
	// Orphans are objects with the name of a file but without a row, and uploads in parts
	// without a row that nothing will complete. OrphanKeys names the first of them. Removed
	// counts those that were removed.
	Orphans    int64    `json:"orphans"`
	OrphanKeys []string `json:"orphan_keys,omitempty"`
	Removed    int64    `json:"removed"`
	// Foreign are objects that this service never named, without those below Proofs.
	// They stay, and are no difference.
	Foreign int64 `json:"foreign"`
	// Failed are files and uploads that could not be looked at, or not put right: the
	// audit went on with the others.
	Failed int64 `json:"failed"`
}

// Differences is how many differences between index and bucket there were.
func (r *AuditReport) Differences() int64 {
	n := r.Leftovers + r.Orphans
	for _, moved := range r.Moved {
		n += moved
	}
	return n
}

// audit is an audit under way.
type audit struct {
	*Service
	options AuditOptions
	report  AuditReport
	orphans []Orphan // up to one more than the limit
	nextRow func() (File, error, bool)
	row     *File // ahead; nil: there are no more
	failed  error // the first
}

// Audit compares a listing of the bucket below the service's prefix, in order of
// key, with the index. Listing and index are no evidence: each difference is looked
// at, and only what the look finds is written. Of what the timers are about to do
// anyway nothing is said. What cannot be looked at does not end it, but makes an error
// in the end; after another error the counts are those of a part.
func (s *Service) Audit(ctx context.Context, objects iter.Seq2[Listed, error], o AuditOptions) (AuditReport, error) {
	a := &audit{Service: s, options: o, report: AuditReport{Moved: map[string]int64{}}}
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

// recordFailure notes that something could not be looked at, or not put right. Only the end of
// ctx ends the audit.
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

// merge reads objects and rows side by side, in order of key.
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

// compare compares the row ahead with its object, nil for none, and goes on to the
// next row.
func (a *audit) compare(ctx context.Context, o *Listed) error {
	f := a.row
	if f.differs(o) {
		err := a.checkFile(ctx, f.ID)
		if errors.Is(err, ErrNotFound) {
			err = nil
		}
		if err := a.recordFailure(ctx, f.Key, err); err != nil {
			return err
		}
	}
	return a.advance(ctx)
}

// auditClockTolerance is how far the store's clock may be ahead of the index's without a look at
// every object. An object that was replaced that soon after it was indexed, of which
// no notification came, is not noticed if its size is the same.
const auditClockTolerance = time.Minute

// differs reports that a file may not be as the listing has its object. What is
// Deleted or Purging has a timer, whatever lies there.
func (f *File) differs(o *Listed) bool {
	switch f.State {
	case Indexed:
		return o == nil || o.Size != f.Size || o.LastModified.After(f.UpdatedAt.Add(auditClockTolerance))
	case Pending, Lost, Gone, Expired:
		return o != nil
	}
	return false
}

// checkFile looks at a file, and counts what came of it. The first look writes nothing:
// mostly there is no difference after all.
func (a *audit) checkFile(ctx context.Context, id string) error {
	f, err := a.Index.Load(ctx, id)
	if err != nil {
		return err
	}
	seen, err := a.Objects.Stat(ctx, f.Key)
	if err != nil {
		return err
	}
	next, _ := f.reconciled(seen, false, &a.Times, a.now())
	leftover := seen.Found && f.objectRemovable()
	if next.State == f.State && !leftover {
		return nil
	}
	if leftover {
		a.report.Leftovers++
	} else {
		a.report.Moved[next.State.String()]++
	}
	if !a.options.DryRun {
		_, err = a.Reconcile(ctx, id, false)
	}
	return err
}

// checkObjectWithoutRow meets an object whose row the scan has not shown. The row may be younger
// than the scan.
func (a *audit) checkObjectWithoutRow(ctx context.Context, key string) error {
	id, ours := a.ID(key)
	if !ours {
		if !strings.HasPrefix(key, a.Prefix+ProbeFolder) {
			a.report.Foreign++
		}
		return nil
	}
	err := a.checkFile(ctx, id)
	if !errors.Is(err, ErrNotFound) {
		return a.recordFailure(ctx, key, err)
	}
	a.addOrphan(key, "")
	return nil
}

// checkUploads meets the uploads in parts that began so long ago that nothing completes
// them. Those that a timer is about to end are left to it.
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

// checkOldUpload counts an upload that nothing completes any more, and aborts it if its file
// has a row. It skips an upload that the row's timer is about to abort, and one that the
// list of its own key does not have.
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
