package world

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/pawlhq/pawl/files"
	"github.com/pawlhq/pawl/internal/simkit"
	"github.com/pawlhq/pawl/store"
	"github.com/pawlhq/pawl/store/memory"
)

func drawTimes(t *simkit.Tape) files.Times {
	return files.Times{
		URL: simkit.Pick(t, 15*time.Minute, 15*time.Minute, 3*24*time.Hour), Parts: simkit.Pick(t, 20*time.Minute, 12*time.Hour), Upload: simkit.Pick(t, time.Hour, 10*time.Minute),
		Undelete: simkit.Pick(t, 2*time.Hour, 2*time.Hour, 0, 30*time.Hour), Delay: 6 * time.Hour, Skew: 15 * time.Minute,
	}
}

// epoch is after all context deadlines, which use the system clock.
var epoch = time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)

const nodes = 2

// World is one simulated history.
type World struct {
	*simkit.World
	threads   *threads
	faultless bool

	times     files.Times
	skews     [nodes]time.Duration
	faultRate int // faults per 1,000 requests
	lossRate  int // lost notifications per 1,000
	limit     files.Usage

	records   *memory.Store
	index     *files.Index // of the checks, without faults
	processes [nodes]*process
	usage     map[string][]usageAt // by entity, one element for each write
	waiting   []*thread            // for other threads of their process
	objects   map[string]files.Promise
	uploads   []*upload
	stale     []*upload             // completed uploads that lists of all keys still contain
	models    map[string]*fileModel // by file ID
	ids       int

	writes    int // to index and bucket
	lastAudit files.AuditReport
}

type fileModel struct {
	id             string
	key            string
	row            files.File // zero if there is no row
	deletes        int        // in progress, or with an unknown result
	deletesBegun   int
	undeletes      int
	undeletesBegun int
	mustBeVisible  bool // an upload or undelete succeeded, and no delete has started since
	mustBeHidden   bool // a delete succeeded, and no undelete has started since
	stored         bool // the bytes were stored before any delete started
	deleteBegun    bool
	tampered       bool // a third party has changed the object
	viaService     bool // the service uploads, and may stop waiting
	expired        bool
	expiredWrite   int // number of the write that expired it

	createdAt       time.Duration // of the first row
	createdWrite    int           // number of the write of the first row
	rowWrittenAt    time.Duration // of the current row
	lastMatch       time.Duration
	lastMismatch    time.Duration
	objectChanges   int
	notifiedChanges int // objectChanges at the last notified reconciliation
}

func (w *World) latency() time.Duration { return w.Tape.UpTo(200 * time.Millisecond) }

func (w *World) newID() string {
	w.ids++
	return fmt.Sprintf("%08d-0000-7000-8000-000000000000", w.ids)
}

func (w *World) runEvents() {
	for w.Step() {
		w.wakeUp()
	}
}

func (w *World) model(id string) *fileModel {
	t := w.models[id]
	if t == nil {
		t = &fileModel{id: id}
		w.models[id] = t
	}
	return t
}

func (w *World) apply(changes []store.Change) ([]store.Outcome, error) {
	out, err := w.records.Apply(context.Background(), changes)
	if err != nil || !out[0].Applied {
		return out, err
	}
	w.writes++
	w.checkUsageIsSwapped(changes)
	var entity string
	for i := range changes {
		if changes[i].Key.Space != fileSpace {
			continue
		}
		t := w.model(changes[i].Key.Name)
		next, err := w.index.Load(context.Background(), t.id)
		if err != nil && !errors.Is(err, files.ErrNotFound) {
			w.Violatef("", "%s: %v", t.id, err)
		}
		w.checkChange(t, &next)
		entity = cmp.Or(next.Entity, t.row.Entity)
		w.changed(t, next)
	}
	w.checkRecords(entity)
	return out, nil
}

func (w *World) changed(t *fileModel, row files.File) {
	t.row, t.rowWrittenAt = row, w.Now
	if row.State == files.Expired && !t.expired {
		t.expired, t.expiredWrite = true, w.writes
	}
	if !row.DueAt.IsZero() && !w.faultless {
		node := w.Tape.Choose(nodes)
		at := row.DueAt.Sub(epoch) - w.skews[node] + w.Tape.UpTo(time.Minute)
		w.At(at, simkit.Func(func() { w.sweep(node) }))
	}
	w.Tracef("%s is %s, next reconciliation at %v", t.id, name(row.State), row.DueAt.Sub(epoch))
}

func (w *World) sweep(node int) {
	w.spawn(node, func(t *thread) { _, _ = (&files.Sweeper{Service: &t.files}).Round(t.ctx) })
}

// The date of head is the store's clock in whole seconds.
func (w *World) head(key string) files.ObjectInfo {
	p, ok := w.objects[key]
	return files.ObjectInfo{Found: ok, Size: p.Size, SHA256: p.SHA256, Parts: p.Parts(), Date: epoch.Add(w.Now).Truncate(time.Second)}
}

func (w *World) page(after string) (page []files.Listed) {
	for _, key := range slices.Sorted(maps.Keys(w.objects)) {
		if key > after && len(page) < listPage {
			page = append(page, files.Listed{Key: key, Size: w.objects[key].Size})
		}
	}
	return page
}

func (w *World) audit(node int) {
	w.spawn(node, func(t *thread) {
		r, err := t.files.Audit(t.ctx, t.list, files.AuditOptions{Limit: 100})
		w.Tracef("audited: %+v, %v", r, err)
		if err == nil {
			w.lastAudit = r
		}
	})
}

func (w *World) storeObject(key string, p files.Promise) bool {
	if _, exists := w.objects[key]; exists {
		return false
	}
	t := w.model(key)
	w.Tracef("the bytes of %s land", key)
	t.stored = t.stored || !t.deleteBegun
	w.changeObject(t, &p)
	return true
}

func (w *World) changeObject(t *fileModel, p *files.Promise) {
	w.writes++
	w.observeObject(t)
	if p == nil {
		delete(w.objects, t.id)
	} else {
		w.objects[t.id] = *p
	}
	w.observeObject(t)
	t.objectChanges++
	w.notify(t.id)
}

func (w *World) objectMatches(t *fileModel) bool {
	p, exists := w.objects[t.id]
	return exists && p == t.row.Promise
}

func (w *World) observeObject(t *fileModel) {
	if w.objectMatches(t) {
		t.lastMatch = w.Now
	} else {
		t.lastMismatch = w.Now
	}
}

func (w *World) remove(key string) {
	if _, exists := w.objects[key]; !exists {
		return
	}
	w.Tracef("the object of %s is removed", key)
	w.checkRemoval(w.model(key))
	w.changeObject(w.model(key), nil)
}

func (w *World) notify(key string) {
	if w.faultless || w.Tape.Chance(w.lossRate) {
		return
	}
	for again := true; again; again = w.Tape.Chance(200) {
		d := w.latency()
		if w.Tape.Chance(300) {
			d = w.Tape.UpTo(w.times.Delay)
		}
		w.After(d, func() { w.handleNotification(key) })
	}
}

func (w *World) handleNotification(id string) {
	w.spawn(w.Tape.Choose(nodes), func(t *thread) {
		f := w.model(id)
		puts := f.objectChanges
		err := t.files.ReconcileNotified(t.ctx, id)
		switch {
		case err == nil:
			f.notifiedChanges = max(f.notifiedChanges, puts)
		case w.Now < w.times.Delay:
			w.After(w.Tape.UpTo(time.Minute), func() { w.handleNotification(id) })
		}
	})
}

func promise(n int) (p files.Promise) {
	p.Size = int64(10 + n)
	binary.BigEndian.PutUint64(p.SHA256[:], uint64(n+1))
	return p
}

// With partSize, a multipart file has three or four parts.
const partSize = 4
