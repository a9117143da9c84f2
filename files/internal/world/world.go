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

// drawTimes draws a world's times, which are sometimes so that one of them is
// longer than all others.
func drawTimes(t *simkit.Tape) files.Times {
	return files.Times{
		URL: simkit.Pick(t, 15*time.Minute, 15*time.Minute, 3*24*time.Hour), Parts: simkit.Pick(t, 20*time.Minute, 12*time.Hour), Upload: simkit.Pick(t, time.Hour, 10*time.Minute),
		Undelete: simkit.Pick(t, 2*time.Hour, 2*time.Hour, 0, 30*time.Hour), Delay: 6 * time.Hour, Skew: 15 * time.Minute,
	}
}

// epoch is when a world begins: after all deadlines of contexts, which go by the
// clock of the machine.
var epoch = time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)

// nodes is how many machines run the service. Each has a clock of its own.
const nodes = 2

// World is one history.
type World struct {
	*simkit.World
	threads   *threads
	faultless bool // no more faults

	times     files.Times
	skews     [nodes]time.Duration
	faultRate int // faults in 1000 requests
	lossRate  int // notifications in 1000 that are lost
	limit     files.Usage

	records   *memory.Store
	index     *files.Index // of the checks: no fault happens to it
	processes [nodes]*process
	usage     map[string][]usageAt // by entity, one for each write
	waiting   []*thread            // for others of their processes
	objects   map[string]files.Promise
	uploads   []*upload             // in parts, that are open
	stale     []*upload             // that were completed, and that lists of all keys still have
	models    map[string]*fileModel // by file
	ids       int                   // of files and uploads

	writes    int               // to the index and of the bucket
	lastAudit files.AuditReport // the last one
}

// fileModel is what the world knows of a file.
type fileModel struct {
	id             string
	key            string     // of its idempotency
	row            files.File // zero: none
	deletes        int        // calls under way, or of unknown end
	deletesBegun   int
	undeletes      int
	undeletesBegun int
	mustBeVisible  bool // an upload or undelete was answered, and no delete has begun since
	mustBeHidden   bool // a delete was answered, and no undelete has begun since
	stored         bool // the bytes have landed, before any delete began
	deleteBegun    bool // a delete has begun
	tampered       bool // a stranger has changed the object
	viaService     bool // the service itself uploads, and may give up
	expired        bool // it was Expired once
	expiredWrite   int  // the write that made it so

	createdAt       time.Duration // when its first row was written
	createdWrite    int           // the write of that row
	rowWrittenAt    time.Duration // when its row was
	lastMatch       time.Duration // when the object last was what was promised
	lastMismatch    time.Duration // when it last was not
	objectChanges   int           // how often the object was changed
	notifiedChanges int           // of the puts, how many a look by notice has followed
}

func (w *World) latency() time.Duration { return w.Tape.UpTo(200 * time.Millisecond) }

func (w *World) newID() string {
	w.ids++
	return fmt.Sprintf("%08d-0000-7000-8000-000000000000", w.ids)
}

// runEvents lets happen what is planned until nothing is.
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

// apply changes records, and checks that the files may change so.
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

// changed notes the row of a file, and plans a sweep when it is due.
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
	w.Tracef("%s is %s, look at %v", t.id, name(row.State), row.DueAt.Sub(epoch))
}

func (w *World) sweep(node int) {
	w.spawn(node, func(t *thread) { _, _ = (&files.Sweeper{Service: &t.files}).Round(t.ctx) })
}

// head is the store's answer, dated by its clock in whole seconds.
func (w *World) head(key string) files.ObjectInfo {
	p, ok := w.objects[key]
	return files.ObjectInfo{Found: ok, Size: p.Size, SHA256: p.SHA256, Parts: p.Parts(), Date: epoch.Add(w.Now).Truncate(time.Second)}
}

// page is the store's answer to a listing after a key.
func (w *World) page(after string) (page []files.Listed) {
	for _, key := range slices.Sorted(maps.Keys(w.objects)) {
		if key > after && len(page) < listPage {
			page = append(page, files.Listed{Key: key, Size: w.objects[key].Size})
		}
	}
	return page
}

// audit audits on a node.
func (w *World) audit(node int) {
	w.spawn(node, func(t *thread) {
		r, err := t.files.Audit(t.ctx, t.list, files.AuditOptions{Limit: 100})
		w.Tracef("audited: %+v, %v", r, err)
		if err == nil {
			w.lastAudit = r
		}
	})
}

// storeObject stores an object, unless one is there.
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

// changeObject changes an object; nil: removes it.
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

// objectMatches reports that the object is what was promised.
func (w *World) objectMatches(t *fileModel) bool {
	p, exists := w.objects[t.id]
	return exists && p == t.row.Promise
}

// observeObject notes what the object is now.
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

// notify lets a notification come, or not, or twice.
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

// handleNotification is what a notification leads to, again and again until it is acknowledged.
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

// promise is what user number n uploads.
func promise(n int) (p files.Promise) {
	p.Size = int64(10 + n)
	binary.BigEndian.PutUint64(p.SHA256[:], uint64(n+1))
	return p
}

// partSize is so that each file has three parts or four.
const partSize = 4
