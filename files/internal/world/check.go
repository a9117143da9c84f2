package world

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/pawlhq/pawl/files"
	"github.com/pawlhq/pawl/store"
)

// The zero state of allowedTransitions means that there is no row.
var allowedTransitions = map[files.State][]files.State{
	0:             {files.Pending},
	files.Pending: {files.Indexed, files.Expired, files.Deleted},
	files.Indexed: {files.Lost, files.Deleted},
	files.Lost:    {files.Indexed, files.Deleted},
	files.Deleted: {files.Indexed, files.Pending, files.Purging},
	files.Purging: {files.Gone},
	files.Gone:    {0},
	files.Expired: {0},
}

func (w *World) checkChange(t *fileModel, next *files.File) {
	from, to := t.row.State, next.State
	if from != to && !slices.Contains(allowedTransitions[from], to) {
		w.Violatef("", "%s went from %s to %s", t.id, name(from), name(to))
	}
	if to == files.Indexed && t.mustBeHidden {
		w.Violatef("", "%s is visible, although it was deleted", t.id)
	}
	if to == files.Pending && from == files.Deleted && t.mustBeHidden {
		w.Violatef("", "%s may become visible, although it was deleted", t.id)
	}
	if t.mustBeVisible && !t.tampered && from == files.Indexed && to != files.Indexed {
		w.Violatef("", "%s is not visible, although no user deleted it", t.id)
	}
	w.checkObserved(t, from, to)
	if to == files.Purging && w.Now+w.times.Skew < next.DeletedAt.Sub(epoch)+w.times.Undelete {
		w.Violatef("", "%s is purged while it may be undeleted", t.id)
	}
	if to == 0 && w.hasOpenUpload(t.id) {
		w.Violatef("", "%s is dropped while an upload of it is open", t.id)
	}
	if from == 0 {
		t.createdAt, t.createdWrite, t.key = w.Now, w.writes, next.Idempotency
		w.checkKey(t)
	}
}

func (w *World) checkKey(t *fileModel) {
	for _, other := range w.models {
		if t.key != "" && other != t && other.key == t.key && !other.expired && t.createdAt-other.createdAt < minKeyLife {
			w.Violatef("", "%s and %s both have the idempotency key %s", t.id, other.id, t.key)
		}
	}
}

const minKeyLife = 24 * time.Hour

// checkObserved checks that the new state matched the object at some time since the row was
// written. Otherwise the service decided for an older row.
func (w *World) checkObserved(t *fileModel, from, to files.State) {
	w.observeObject(t)
	switch {
	case to == files.Indexed && from != to && t.lastMatch < t.rowWrittenAt:
		w.Violatef("", "%s is visible, but had no matching object since it was %s", t.id, from)
	case to == files.Lost && from != to && t.lastMismatch < t.rowWrittenAt:
		w.Violatef("", "%s is lost, but its object matched since it was %s", t.id, from)
	case (to == files.Gone || to == 0) && t.lastMismatch < t.rowWrittenAt:
		w.Violatef("", "%s is dropped, but its object matched since it was %s", t.id, from)
	}
}

func (w *World) checkNotified() {
	for _, t := range w.models {
		if s := t.row.State; t.notifiedChanges == t.objectChanges && (s == files.Indexed || s == files.Lost) && (s == files.Indexed) != w.objectMatches(t) {
			w.Violatef("", "%s is %s, unlike its object, although all changes were notified", t.id, s)
		}
	}
}

func (w *World) checkAudited() {
	before := w.writes
	w.audit(0)
	w.runEvents()
	if w.lastAudit.Differences() > 0 || w.writes != before {
		w.Violatef("", "a second audit finds %+v, and writes %d times", w.lastAudit, w.writes-before)
	}
}

func name(s files.State) string { return cmp.Or(s.String(), "unknown") }

var charged = []files.State{files.Pending, files.Indexed, files.Lost, files.Deleted, files.Purging}

func (w *World) checkQuota(entity string) {
	var sum files.Usage
	for _, t := range w.models {
		if t.row.Entity != entity || !slices.Contains(charged, t.row.State) {
			continue
		}
		sum.Bytes += max(t.row.Size, 4096)
		if t.row.State == files.Pending || t.row.State == files.Deleted && t.row.WasPending {
			sum.Open++
		}
	}
	used, err := w.index.Used(context.Background(), entity)
	if err != nil || used != sum {
		w.Violatef("", "%s has usage %+v, and its files add up to %+v: %v", entity, used, sum, err)
	}
	if used.Bytes > w.limit.Bytes || used.Open > w.limit.Open {
		w.Violatef("", "%s has usage %+v, above its limit %+v", entity, used, w.limit)
	}
}

type usageAt struct {
	write int
	used  files.Usage
}

func (w *World) checkRecords(entity string) {
	w.checkQuota(entity)
	entries := map[string]store.Nonce{}
	for _, r := range w.scan(store.Range{Space: "entity/" + entity}) {
		entries[r.Name] = r.Nonce
	}
	keys := map[string]store.Record{}
	for _, r := range w.scan(store.Range{Space: "idempotency", After: store.Join(entity, ""), Before: store.End(store.Join(entity, ""))}) {
		keys[r.Name] = r
	}
	for _, t := range w.models {
		row := &t.row
		if row.Entity != entity {
			continue
		}
		if nonce, listed := entries[t.id]; listed != row.Deletable() || listed && nonce != row.Nonce {
			w.Violatef("", "%s is %s, and has an entry: %v, of another nonce: %v", t.id, name(row.State), listed, nonce != row.Nonce)
		}
		delete(entries, t.id)
		key := store.Join(entity, row.Idempotency)
		r, exists := keys[key]
		mine := exists && strings.Contains(r.Body, t.id)
		if row.Idempotency != "" && !mine && row.State != files.Expired {
			w.Violatef("", "%s is %s, and its idempotency key does not name it", t.id, name(row.State))
		}
		if mine {
			delete(keys, key)
		}
	}
	if len(entries) > 0 || len(keys) > 0 {
		w.Violatef("", "%s has entries %v and idempotency keys %v of no file", entity, entries, keys)
	}
	used, err := w.index.Used(context.Background(), entity)
	if err != nil {
		w.Violatef("", "%v", err)
	}
	w.usage[entity] = append(w.usage[entity], usageAt{w.writes, used})
}

// checkUsageIsSwapped requires a usage write with each deleted idempotency key. Otherwise a
// creation whose response was lost could land after a later request of the same client.
func (w *World) checkUsageIsSwapped(changes []store.Change) {
	dropped, swapped := false, false
	for i := range changes {
		c := &changes[i]
		dropped = dropped || c.Key.Space == "idempotency" && c.Next == nil
		if c.Key.Space == "quota" && c.Next == nil {
			w.Violatef("", "the usage of %s was deleted", c.Key.Name)
		}
		swapped = swapped || c.Key.Space == "quota" && c.Next != nil
	}
	if dropped && !swapped {
		w.Violatef("", "an idempotency key was dropped without a write of the usage")
	}
}

// checkRefusal accepts a refusal if the upload exceeded the limit at some time since the write,
// while its idempotency key had no file.
func (w *World) checkRefusal(u *user, since int, err error) {
	rowOf := func(write int) bool {
		for _, t := range w.models {
			if u.key != "" && t.key == u.key && t.createdWrite <= write && (!t.expired || write < t.expiredWrite) {
				return true
			}
		}
		return false
	}
	log := w.usage[u.entity()]
	for i, at := range log {
		if i+1 < len(log) && log[i+1].write <= since {
			continue
		}
		full := at.used.Bytes+max(u.promise.Size, 4096) > w.limit.Bytes
		if errors.Is(err, files.ErrOpenUploads) {
			full = at.used.Open+1 > w.limit.Open
		}
		if full && !rowOf(at.write) {
			return
		}
	}
	w.Violatef("", "user %d was rejected: %v, but there always was room, or a file with its key", u.n, err)
}

func (w *World) checkRemoval(t *fileModel) {
	if s := t.row.State; s != 0 && s != files.Purging && s != files.Gone && s != files.Expired {
		w.Violatef("", "the object of %s was removed while it was %s", t.id, s)
	}
	if t.mustBeVisible {
		w.Violatef("", "the object of %s was removed, although no user deleted it", t.id)
	}
}

func (w *World) checkQuiescent(audited bool) {
	for _, t := range w.models {
		if t.tampered && !audited {
			continue
		}
		if s := t.row.State; s != 0 && s != files.Indexed && s != files.Lost {
			w.Violatef("", "at the end %s is still %s", t.id, s)
		}
		if why := w.mismatch(t); why != "" {
			w.Violatef("", "at the end %s is %s: %s", t.id, name(t.row.State), why)
		}
	}
	for _, u := range w.uploads {
		if audited || !u.unexpected {
			w.Violatef("", "at the end the upload %s of %s is open", u.id, u.key)
		}
	}
}

func (w *World) mismatch(t *fileModel) string {
	_, stored := w.objects[t.id]
	indexed := t.row.State == files.Indexed
	switch {
	case stored && !indexed && (t.row.State != files.Lost || w.objectMatches(t)):
		return "its object exists"
	case indexed && t.mustBeHidden:
		return "it is visible, although it was deleted"
	case indexed && !w.objectMatches(t):
		return "it is visible, but its object does not match the promise"
	case t.tampered:
		return "" // a third party has changed the object
	case !indexed && t.mustBeVisible:
		return "it is not visible, although no user deleted it"
	case !indexed && t.stored && !t.deleteBegun && !t.viaService:
		return "it is not visible, although its bytes were stored"
	case t.row.State == files.Lost:
		return "it is lost, but no third party changed its object"
	}
	return ""
}
