package world

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/pawlhq/pawl/files"
)

type upload struct {
	key, id    string
	promise    files.Promise
	begun      time.Duration
	parts      [8]bool
	unexpected bool // begun by a third party, or after LandBy: no reconciliation aborts it
}

func (u *upload) whole() bool {
	n := 0
	for _, come := range u.parts {
		if come {
			n++
		}
	}
	return n == u.promise.Parts()
}

func (w *World) findUpload(id string) *upload {
	for _, u := range w.uploads {
		if u.id == id {
			return u
		}
	}
	return nil
}

func (w *World) hasOpenUpload(key string) bool {
	return slices.ContainsFunc(w.uploads, func(u *upload) bool { return u.key == key })
}

func (w *World) beginUpload(key string, p files.Promise, landBy time.Time) string {
	w.ids++
	u := &upload{key: key, id: fmt.Sprintf("u%d", w.ids), promise: p, begun: w.Now}
	u.unexpected = !epoch.Add(w.Now).Before(landBy)
	w.uploads = append(w.uploads, u)
	w.writes++
	w.Tracef("the upload %s of %s begins, late: %v", u.id, key, u.unexpected)
	return u.id
}

func (w *World) storePart(id string, number int) {
	if u := w.findUpload(id); u != nil {
		w.Tracef("part %d of %s lands", number, id)
		u.parts[number-1] = true
	}
}

// If the object exists, the upload remains open after complete.
func (w *World) complete(id string) {
	if u := w.findUpload(id); u != nil && u.whole() && w.storeObject(u.key, u.promise) {
		w.endUpload(id)
		w.stale = append(w.stale, u)
	}
}

func (w *World) endUpload(id string) {
	w.uploads = slices.DeleteFunc(w.uploads, func(u *upload) bool {
		if u.id == id {
			w.Tracef("the upload %s of %s is over", id, u.key)
			w.writes++
		}
		return u.id == id
	})
}

// Begin implements [files.Multipart]. It stops waiting at the file's deadline, but the request may
// arrive later.
func (b *objects) Begin(_ context.Context, f *files.File) (id string, err error) {
	t, w := (*thread)(b), b.w
	if t.dead() || f.PutBy.Sub(epoch) <= w.Now {
		return "", errNoAnswer
	}
	if !t.faultless && w.Tape.Chance(30) {
		t.sleep(w.Tape.UpTo(w.times.Parts + w.times.Upload + 20*time.Minute))
	}
	key, p, landBy := f.Key, f.Promise, f.LandBy
	err = t.request(func() error {
		id = w.beginUpload(key, p, landBy)
		return nil
	})
	return id, err
}

func (b *objects) SignPart(_ context.Context, f *files.File, _ int, _ [32]byte, until time.Time) (files.SignedRequest, error) {
	if (*thread)(b).dead() {
		return files.SignedRequest{}, errDead
	}
	return files.SignedRequest{URL: f.UploadID, Until: until}, nil
}

func (b *objects) Complete(_ context.Context, f *files.File) error {
	t, w, id := (*thread)(b), b.w, f.UploadID
	whole := false
	err := t.request(func() error {
		u := w.findUpload(id)
		whole = u != nil && u.whole()
		return nil
	})
	if err != nil || !whole {
		return err
	}
	return t.request(func() error {
		w.complete(id)
		return nil
	})
}

func (b *objects) Abort(_ context.Context, _, uploadID string) error {
	return (*thread)(b).request(func() error {
		b.w.endUpload(uploadID)
		return nil
	})
}

// Uploads implements [files.Multipart]. A list of all keys contains completed uploads, like MinIO's
// after a disconnect.
func (b *objects) Uploads(_ context.Context, prefix string) iter.Seq2[files.OpenUpload, error] {
	return func(yield func(files.OpenUpload, error) bool) {
		var all []files.OpenUpload
		err := (*thread)(b).request(func() error {
			listed := b.w.uploads
			if prefix == "" {
				listed = slices.Concat(listed, b.w.stale)
			}
			for _, u := range listed {
				if strings.HasPrefix(u.key, prefix) {
					all = append(all, files.OpenUpload{Key: u.key, ID: u.id, Begun: epoch.Add(u.begun)})
				}
			}
			return nil
		})
		if err != nil {
			yield(files.OpenUpload{}, err)
			return
		}
		for _, u := range all {
			if !yield(u, nil) {
				return
			}
		}
	}
}

func (u *user) sendParts(f files.File, parts []files.SignedRequest) {
	w := u.w
	within := w.Tape.UpTo(w.times.Parts + 10*time.Minute)
	if w.Tape.Chance(500) {
		within = time.Minute
	}
	for i, s := range parts {
		for again := w.Tape.Chance(970); again; again = w.Tape.Chance(100) {
			w.After(w.Tape.UpTo(within), func() {
				if !epoch.Add(w.Now).Before(s.Until) {
					return // the store rejects it
				}
				long := w.latency()
				if w.Tape.Chance(100) {
					long = w.Tape.UpTo(w.times.Upload)
				}
				w.After(long, func() { w.storePart(s.URL, i+1) })
			})
		}
	}
	if w.Tape.Chance(800) {
		w.After(within+w.Tape.UpTo(2*time.Minute), func() { u.complete(f.ID) })
	}
	if w.Tape.Chance(300) {
		late := f.LandBy.Sub(epoch) - w.Now - time.Minute + w.Tape.UpTo(lateCompletion)
		w.After(max(late, 0), func() { u.complete(f.ID) })
	}
}

// lateCompletion is the maximum distance of a completion from the file's deadline.
const lateCompletion = 3 * time.Minute

func (u *user) complete(id string) {
	w := u.w
	w.spawn(w.Tape.Choose(nodes), func(t *thread) {
		f, err := t.files.Complete(t.ctx, id)
		w.Tracef("user %d completes %s: %s, %v", u.n, id, name(f.State), err)
		if err == nil && f.State == files.Indexed && !w.model(id).deleteBegun {
			w.model(id).mustBeVisible = true
		}
	})
}
