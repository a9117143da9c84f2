package world

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/pawlhq/pawl/files"
	"github.com/pawlhq/pawl/internal/simkit"
)

func (w *World) user(n int) {
	u := &user{w: w, n: n, promise: promise(n)}
	if w.Tape.Chance(500) {
		u.key = fmt.Sprintf("key%d", n)
	}
	u.viaService = w.Tape.Chance(250)
	if !u.viaService && w.Tape.Chance(400) {
		u.promise.PartSize = partSize
	}
	w.After(w.Tape.UpTo(10*time.Minute), func() { u.upload(3) })
	if u.key != "" && w.Tape.Chance(500) {
		w.After(w.Tape.UpTo(simkit.Pick(w.Tape, 30*time.Minute, minKeyLife)), func() { u.upload(1) })
	}
	for range w.Tape.Choose(4) {
		at := w.Tape.UpTo(4 * time.Hour)
		if w.Tape.Chance(500) {
			at = w.Tape.UpTo(30 * time.Minute)
		}
		w.After(at, func() { u.change(w.Tape.Chance(400)) })
		if w.Tape.Chance(30) {
			w.After(at+w.latency(), u.tamper)
		}
	}
	if w.Tape.Chance(30) {
		w.After(w.Tape.UpTo(4*time.Hour), u.tamper)
	}
}

type user struct {
	w          *World
	n          int
	key        string
	promise    files.Promise
	viaService bool
	ids        []string
}

func (u *user) entity() string { return fmt.Sprintf("e%d", u.n%2) }

func (u *user) upload(tries int) {
	u.w.spawn(u.w.Tape.Choose(nodes), func(t *thread) {
		var f files.File
		var signed files.SignedRequest
		var parts []files.SignedRequest
		var err error
		since := u.w.writes
		switch {
		case u.promise.PartSize > 0:
			f, parts, err = t.files.UploadParts(t.ctx, u.entity(), u.key, u.promise, make([][32]byte, u.promise.Parts()))
		case u.viaService:
			f, err = t.files.UploadBytes(t.ctx, u.entity(), u.key, u.promise, nil)
			u.uploadedBytes(f, err)
		default:
			f, signed, err = t.files.Upload(t.ctx, u.entity(), u.key, u.promise)
		}
		if errors.Is(err, files.ErrQuota) || errors.Is(err, files.ErrOpenUploads) {
			u.w.checkRefusal(u, since, err)
		}
		if err != nil && strings.Contains(err.Error(), "idempotency key is expired") {
			u.w.Violatef("", "user %d was rejected, because its upload has expired: %v", u.n, err)
		}
		if err != nil {
			if tries > 1 && !errors.Is(err, files.ErrQuota) {
				u.w.After(u.w.Tape.UpTo(time.Minute), func() { u.upload(tries - 1) })
			}
			return
		}
		if u.w.model(f.ID).row.State == 0 {
			u.w.Violatef("", "user %d got %s, which has no row", u.n, f.ID)
		}
		u.ids = append(u.ids, f.ID)
		u.w.Tracef("user %d has %s, until %v", u.n, f.ID, signed.Until.Sub(epoch))
		if signed.URL != "" {
			u.send(signed)
		}
		if parts != nil {
			u.sendParts(f, parts)
		}
	})
}

func (u *user) uploadedBytes(f files.File, err error) {
	if err != nil {
		return
	}
	if t := u.w.model(f.ID); !t.deleteBegun {
		t.mustBeVisible = true
	}
}

func (u *user) send(s files.SignedRequest) {
	w := u.w
	for range w.Tape.Choose(3) {
		d := w.Tape.UpTo(time.Minute)
		if w.Tape.Chance(500) {
			d = w.Tape.UpTo(w.times.URL + 20*time.Minute)
		}
		w.After(d, func() {
			if !epoch.Add(w.Now).Before(s.Until) {
				return // the store rejects it
			}
			long := w.latency()
			if w.Tape.Chance(300) {
				long = w.Tape.UpTo(w.times.Upload)
			}
			w.After(long, func() {
				if w.storeObject(s.URL, u.promise) && w.Tape.Chance(300) {
					w.handleNotification(s.URL) // the user completes the upload
				}
			})
		})
	}
}

func (u *user) change(undelete bool) {
	if len(u.ids) == 0 {
		return
	}
	w := u.w
	u.changeFile(u.ids[w.Tape.Choose(len(u.ids))], undelete)
}

func (u *user) changeAgain(id string) {
	if u.w.Tape.Chance(500) {
		u.w.After(u.w.Tape.UpTo(2*time.Minute), func() { u.changeFile(id, u.w.Tape.Chance(500)) })
	}
}

func (u *user) changeFile(id string, undelete bool) {
	w := u.w
	w.spawn(w.Tape.Choose(nodes), func(t *thread) {
		if undelete {
			u.undelete(t, w.model(id))
		} else {
			u.delete(t, w.model(id))
		}
	})
}

func (u *user) delete(t *thread, f *fileModel) {
	u.w.Tracef("user %d deletes %s", u.n, f.id)
	f.mustBeVisible, f.deleteBegun = false, true
	f.deletes++
	f.deletesBegun++
	others, begun := f.undeletes, f.undeletesBegun
	_, err := t.files.Delete(t.ctx, f.id)
	f.deletes--
	if err != nil {
		u.changeAgain(f.id) // the first change may have landed, or may land later
		return
	}
	f.mustBeHidden = others == 0 && begun == f.undeletesBegun
	u.w.Tracef("user %d has deleted %s: %v", u.n, f.id, f.mustBeHidden)
}

func (u *user) undelete(t *thread, f *fileModel) {
	u.w.Tracef("user %d undeletes %s", u.n, f.id)
	f.mustBeHidden = false
	f.undeletes++
	f.undeletesBegun++
	others, begun := f.deletes, f.deletesBegun
	got, err := t.files.Undelete(t.ctx, f.id)
	f.undeletes--
	if err != nil {
		u.changeAgain(f.id)
		return
	}
	if got.State == files.Indexed && others == 0 && begun == f.deletesBegun {
		f.mustBeVisible = true
		u.w.Tracef("user %d has undeleted %s", u.n, f.id)
	}
}

func (w *World) putOrphan() {
	t, p := w.model(w.newID()), promise(200)
	w.Tracef("a third party stores an object without a row under %s", t.id)
	t.tampered = true
	w.changeObject(t, &p)
	if w.Tape.Chance(500) {
		w.findUpload(w.beginUpload(t.id, p, epoch.Add(w.Now))).unexpected = true
	}
}

func (u *user) tamper() {
	if len(u.ids) == 0 {
		return
	}
	w, t := u.w, u.w.model(u.ids[0])
	t.tampered = true
	if other := promise(u.n + 100); w.Tape.Chance(300) {
		w.Tracef("a third party replaces the object of %s", t.id)
		w.changeObject(t, &other)
	} else if _, exists := w.objects[t.id]; exists {
		w.Tracef("a third party removes the object of %s", t.id)
		w.changeObject(t, nil)
	}
	if w.Tape.Chance(300) {
		w.After(w.Tape.UpTo(time.Hour), func() {
			if t.row.State == files.Lost {
				w.Tracef("a third party restores the object of %s", t.id)
				w.changeObject(t, &u.promise)
			}
		})
	}
}
