package audit

import (
	"context"
	"iter"
	"time"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
)

// Listing says which objects there are: a [bucket.Store], or a report of what a
// bucket held. Keys come in byte order. An error ends it.
//
// It need not be new: it only says where to look. Where it tells of a version id,
// it tells of all versions of that object, one after the other.
type Listing interface {
	List(ctx context.Context, bucket, prefix, startAfter string) iter.Seq2[bucket.Info, error]
}

// Pipeline is what an audit needs to know of one.
type Pipeline struct {
	Name, Bucket, Prefix string
	// Match selects among the objects below Prefix.
	Match func(event.Object) bool
	// EachVersion: each version of an object has a row.
	EachVersion bool
	// Output is where an object's output goes. Nil: there is none.
	Output *Output
}

// Output says where a pipeline's outputs are.
type Output struct {
	Bucket, Prefix string
	// Of returns the output of an object.
	Of func(ledger.RowKey) event.Object
	// Source returns whose output an object is; false: nobody's.
	Source func(key string) (ledger.RowKey, bool)
}

// Pass compares objects with the rows of one pipeline, in the order of their keys,
// and repairs what was lost. [Auditor.Run] shares out a bucket among many; each
// works with no more than its functions, so that a simulation can have its own.
type Pass struct {
	Pipeline *Pipeline
	Listing  Listing
	AsOf     time.Time    // of the truth, if that is old: what has changed since waits for the next
	Objects  bucket.Store // looks at single objects
	Ledger   *ledger.Ledger
	// SettleWindow is how late a notification may be.
	SettleWindow time.Duration
	// PurgeWatermark, when set, returns how far purges have gone: an object without a row
	// that was changed before is passed over. It is asked after a row is found missing.
	PurgeWatermark func(ctx context.Context) (time.Time, error)
	// Brake is set in the second pass, which raises removals and nothing else. The first
	// pass counts them, and raises all other losses.
	Brake *Brake
	// Redrive gives dead and failed rows fresh attempts. DryRun writes nothing.
	Redrive, DryRun bool
	Now             func() time.Time
	Nonce           func() ledger.Nonce
	// Each calls do with 0 to n-1, in any order and at once.
	Each func(n int, do func(i int))
	// Found, when set, is told of each loss.
	Found func(key ledger.RowKey, what string, repaired bool)
	// Contradiction, when set, is told of each object whose listing contradicts a HEAD.
	Contradiction func(key ledger.RowKey, what string)
	// Unlistable, when set, is told of each object or output that the store cannot list.
	Unlistable func(ref event.Object, err error)
}

// chunk is how many keys are compared before what they showed is repaired.
const chunk = 1000

// Walk audits the keys of a span below a prefix. Whenever all that was found up to a
// key is repaired, commit is told what that came to.
//
// On an error what was compared since is forgotten: a listing that breaks off, or
// repeats itself, shows nothing.
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

// commit hands over the counts, and begins new ones.
func (w *walk) commit(commit func(*Counts) error) error {
	counts := w.counts
	if w.Brake != nil {
		counts = counts.secondPassOnly()
	}
	w.counts = Counts{}
	return commit(&counts)
}

// walk is a Pass under way, between two commits.
type walk struct {
	*Pass
	counts     Counts
	candidates []candidate
	watermark  time.Time // as it was read last
}

// candidate is a row that has to be looked into.
type candidate struct {
	key ledger.RowKey
	// resolveVersion: which version it is the look has to tell.
	resolveVersion bool
	listed         bool
}

// compare finds candidates. It costs no request, and may be wrong: a listing is old,
// and says less than a look.
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

// compareUnlistable takes the rows of an object that the store cannot list: it is there, and
// nothing else is known of it.
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

// recordUnlistable counts and names an object that the store cannot list, in the first pass.
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

// consider makes a row a candidate if a listing shows a loss, or if it is to be
// redriven.
func (w *walk) consider(row *ledger.Row, seen Observation, now time.Time) {
	loss := compare(row, seen, w.settleCutoff(now))
	switch {
	case w.possiblyPurged(row, seen):
	case loss == LostRemoval && w.Brake == nil:
		w.counts.Removable++
	case loss == LostRemoval && w.Brake.exhausted():
		w.counts.Withheld++
	case loss != LostRemoval && w.Brake != nil:
		// The first pass has looked into it. What is listed is not removed, whatever HEAD says.
	case loss != None, w.needsRedrive(row, now):
		w.candidates = append(w.candidates, candidate{key: row.RowKey, listed: seen.Exists})
	case compare(row, seen, farFuture) != None:
		w.counts.TooRecent++
	}
}

// readWatermark learns how far purges have gone.
func (w *walk) readWatermark(ctx context.Context) (err error) {
	if w.PurgeWatermark != nil {
		w.watermark, err = w.PurgeWatermark(ctx)
	}
	return err
}

// possiblyPurged reports that the row of an object may have been purged, and counts that.
func (w *walk) possiblyPurged(row *ledger.Row, seen Observation) bool {
	if !row.Nonce.IsZero() || !seen.Exists || !seen.Identity.ModTime.Before(w.watermark) {
		return false
	}
	w.counts.PossiblyPurged++
	return true
}

// settleCutoff is before when something must have changed to be judged.
func (w *walk) settleCutoff(now time.Time) time.Time {
	before := now.Add(-w.SettleWindow)
	if !w.AsOf.IsZero() && w.AsOf.Before(before) {
		return w.AsOf
	}
	return before
}

// farFuture is later than whatever happens.
var farFuture = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

func (w *walk) needsRedrive(row *ledger.Row, now time.Time) bool {
	if !w.Redrive || row.Unreadable != nil || w.Brake != nil {
		return false
	}
	state := row.State(now)
	return state == ledger.StateDead || state == ledger.StateFailed
}

// listedObservation is what a listing shows of the object of a row. It does not tell the
// metadata, and so does not contradict what the row says of them.
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

// currentVersion is the version that a row stands for: what is done, or what it wants.
func currentVersion(row *ledger.Row) *ledger.Version {
	if row.Settled() && !row.Dead {
		return &row.Have
	}
	return &row.Want
}

// compareVersions compares the versions of one object. A listing that does not name
// them shows the latest one, and nothing of the others.
func (w *walk) compareVersions(infos []bucket.Info, rows []ledger.Row, now time.Time) {
	all := len(infos) > 0 && infos[0].VersionID != ""
	shown := make(map[string]*bucket.Info, len(infos))
	for i := range infos {
		shown[infos[i].VersionID] = &infos[i]
	}
	known := false // the latest version
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
