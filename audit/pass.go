package audit

import (
	"context"
	"iter"
	"time"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
)

// Listing lists a bucket in byte order of the keys, and ends after an error. [bucket.Store] and
// inventory reports implement it.
//
// A listing may be old, because an audit verifies its findings with HEAD requests. If entries
// have version ids, it must yield all versions of an object one after the other.
type Listing interface {
	List(ctx context.Context, bucket, prefix, startAfter string) iter.Seq2[bucket.Info, error]
}

// Pipeline describes a pipeline to an audit.
type Pipeline struct {
	Name, Bucket, Prefix string
	// Match reports whether the pipeline processes an object below Prefix.
	Match func(event.Object) bool
	// EachVersion is set if each version of an object has a row.
	EachVersion bool
	// Output is nil if an audit cannot check the outputs.
	Output *Output
}

// Output is the location of a pipeline's outputs.
type Output struct {
	Bucket, Prefix string
	Of             func(ledger.RowKey) event.Object
	// Source is the inverse of Of. It returns false for a key that is not one of the outputs.
	Source func(key string) (ledger.RowKey, bool)
}

// Pass compares objects with the rows of one pipeline, in key order, and writes the losses to the
// ledger. Simulations replace its functions.
type Pass struct {
	Pipeline     *Pipeline
	Listing      Listing
	AsOf         time.Time    // time of an old listing; the pass ignores later changes
	Objects      bucket.Store // for HEAD requests
	Ledger       *ledger.Ledger
	SettleWindow time.Duration
	// PurgeWatermark, if set, is called after the rows were loaded. The pass ignores objects that
	// have no row and are older than the watermark.
	PurgeWatermark func(ctx context.Context) (time.Time, error)
	// Brake is set in the second pass, which only writes removals. The first pass only counts
	// them.
	Brake           *Brake
	Redrive, DryRun bool
	Now             func() time.Time
	Nonce           func() ledger.Nonce
	// Each calls do with 0 to n-1, in any order and possibly in parallel.
	Each func(n int, do func(i int))
	// Found, if set, receives each finding.
	Found func(key ledger.RowKey, what string, repaired bool)
	// Contradiction, if set, receives each object for which listing and HEAD disagree.
	Contradiction func(key ledger.RowKey, what string)
	// Unlistable, if set, receives each object or output that the store cannot list.
	Unlistable func(ref event.Object, err error)
}

const chunk = 1000

// Walk audits the keys of a span below a prefix. After each chunk it repairs the losses and calls
// commit. If the listing or the scan fails, Walk discards the current chunk, because an
// incomplete listing proves nothing.
func (p *Pass) Walk(ctx context.Context, prefix string, s *Span, commit func(*Counts) error) error {
	w := walk{Pass: p}
	if err := w.readWatermark(ctx); err != nil {
		return err
	}
	m := p.merge(ctx, prefix, s.Done())
	defer m.stop()
	for n := 1; ; n++ {
		key, ok, err := m.next()
		if err != nil {
			return err
		}
		ok = ok && s.advance(key)
		switch {
		case ok && m.unlistable != nil:
			w.compareUnlistable(key, m.rows, m.unlistable)
		case ok:
			w.compare(m.infos, m.rows)
		}
		if ok && n%chunk != 0 {
			continue
		}
		if err := w.repair(ctx); err != nil {
			return err
		}
		if err := w.commit(commit); err != nil || !ok {
			return err
		}
	}
}

func (w *walk) commit(commit func(*Counts) error) error {
	counts := w.counts
	if w.Brake != nil {
		counts = counts.secondPassOnly()
	}
	w.counts = Counts{}
	return commit(&counts)
}

// A walk is the state of a Pass between two commits.
type walk struct {
	*Pass
	counts     Counts
	candidates []candidate
	watermark  time.Time
}

// A candidate needs a HEAD request.
type candidate struct {
	key ledger.RowKey
	// resolveVersion is set if the version id is unknown. HEAD then returns the latest version.
	resolveVersion bool
	listed         bool
}

// compare finds candidates without requests. A candidate may be no loss, because a listing can be
// old and lacks metadata.
func (w *walk) compare(infos []bucket.Info, rows []ledger.Row) {
	now := w.Now()
	for i := range rows {
		w.counts.addRow(&rows[i], now)
	}
	for i := range infos {
		if !w.matches(infos[i].Key) {
			return
		}
		w.counts.Listed++
	}
	if w.Pipeline.EachVersion {
		w.compareVersions(infos, rows, now)
		return
	}
	row := ledger.Row{}
	switch {
	case len(rows) > 0:
		row = rows[0]
	case len(infos) > 0:
		row.RowKey = w.key(infos[0].Key, "")
	}
	if len(infos) > 0 {
		w.consider(&row, listedObservation(&infos[0], &row), now)
		return
	}
	w.consider(&row, Observation{}, now)
}

func (w *walk) compareUnlistable(key string, rows []ledger.Row, err error) {
	now := w.Now()
	for i := range rows {
		w.counts.addRow(&rows[i], now)
	}
	if w.matches(key) {
		w.counts.Listed++
		w.recordUnlistable(event.Object{Bucket: w.Pipeline.Bucket, Key: key}, err)
	}
}

// recordUnlistable does nothing in the second pass, because the first one has counted the object.
func (w *walk) recordUnlistable(ref event.Object, err error) {
	if w.Brake != nil {
		return
	}
	w.counts.Inaccessible++
	if w.Unlistable != nil {
		w.Unlistable(ref, err)
	}
}

func (w *walk) matches(key string) bool {
	return w.Pipeline.Match(event.Object{Bucket: w.Pipeline.Bucket, Key: key})
}

func (w *walk) key(key, version string) ledger.RowKey {
	return ledger.RowKey{Pipeline: w.Pipeline.Name, Bucket: w.Pipeline.Bucket, Key: key, VersionID: version}
}

func (w *walk) consider(row *ledger.Row, seen Observation, now time.Time) {
	loss := compare(row, seen, w.settleCutoff(now))
	switch {
	case w.possiblyPurged(row, seen):
	case loss == LostRemoval && w.Brake == nil:
		w.counts.Removable++
	case loss == LostRemoval && w.Brake.exhausted():
		w.counts.Withheld++
	case loss != LostRemoval && w.Brake != nil:
		// An object in the listing does not count as removed, even if HEAD does not find it.
	case loss != None, w.needsRedrive(row, now):
		w.candidates = append(w.candidates, candidate{key: row.RowKey, listed: seen.Exists})
	case compare(row, seen, farFuture) != None:
		w.counts.TooRecent++
	}
}

func (w *walk) readWatermark(ctx context.Context) (err error) {
	if w.PurgeWatermark != nil {
		w.watermark, err = w.PurgeWatermark(ctx)
	}
	return err
}

// possiblyPurged reports and counts an object whose row a purge may have dropped.
func (w *walk) possiblyPurged(row *ledger.Row, seen Observation) bool {
	if !row.Nonce.IsZero() || !seen.Exists || !seen.Identity.ModTime.Before(w.watermark) {
		return false
	}
	w.counts.PossiblyPurged++
	return true
}

func (w *walk) settleCutoff(now time.Time) time.Time {
	before := now.Add(-w.SettleWindow)
	if !w.AsOf.IsZero() && w.AsOf.Before(before) {
		return w.AsOf
	}
	return before
}

var farFuture = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

func (w *walk) needsRedrive(row *ledger.Row, now time.Time) bool {
	if !w.Redrive || row.Unreadable != nil || w.Brake != nil {
		return false
	}
	state := row.State(now)
	return state == ledger.StateDead || state == ledger.StateFailed
}

// listedObservation copies the metadata from the row, because listings have none.
func listedObservation(info *bucket.Info, row *ledger.Row) Observation {
	known := &row.Have
	if row.Dead {
		known = &row.Want
	}
	return Observation{Exists: true, Identity: ledger.Identity{
		VersionID: info.VersionID, ETag: info.ETag, ModTime: info.ModTime.UTC().Truncate(time.Second),
		Meta: known.Identity.Meta, Size: info.Size,
	}}
}

func currentVersion(row *ledger.Row) *ledger.Version {
	if row.Settled() && !row.Dead {
		return &row.Have
	}
	return &row.Want
}

// compareVersions compares the versions of one object. A listing without ids shows only the latest.
func (w *walk) compareVersions(infos []bucket.Info, rows []ledger.Row, now time.Time) {
	all := len(infos) > 0 && infos[0].VersionID != ""
	shown := make(map[string]*bucket.Info, len(infos))
	for i := range infos {
		shown[infos[i].VersionID] = &infos[i]
	}
	known := false // the latest version has a row
	for i := range rows {
		row := &rows[i]
		info := shown[row.VersionID]
		delete(shown, row.VersionID)
		switch {
		case info != nil:
			w.consider(row, listedObservation(info, row), now)
			known = true
		case all || row.VersionID == "":
			w.consider(row, Observation{}, now)
		case len(infos) > 0:
			seen := listedObservation(&infos[0], row)
			known = known || currentVersion(row).Kind == event.Created && currentVersion(row).Identity.CompatibleWith(seen.Identity)
			fallthrough
		default:
			if w.needsRedrive(row, now) {
				w.candidates = append(w.candidates, candidate{key: row.RowKey})
			}
		}
	}
	for version, info := range shown {
		row := ledger.Row{RowKey: w.key(info.Key, version)}
		switch {
		case all:
			w.consider(&row, listedObservation(info, &row), now)
		case !known && w.possiblyPurged(&row, listedObservation(info, &row)):
		case !known && info.ModTime.Before(w.settleCutoff(now)):
			w.candidates = append(w.candidates, candidate{key: row.RowKey, resolveVersion: true})
		case !known:
			w.counts.TooRecent++
		}
	}
}
