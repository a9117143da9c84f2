package archive

import (
	"slices"
	"testing"
	"time"

	"github.com/pawlhq/pawl/internal/tape"
)

// TestAdoptedWorlds lets the published program work in simulated worlds, and then the
// shipped archive go on behind it. What that program has lost and can still be read is
// stored once, and what it has stored is not stored again. Troubles go on meanwhile.
func TestAdoptedWorlds(t *testing.T) {
	lost, kept := 0, 0
	for seed, n := *firstSeed, uint64(0); n < min(*histories, 1000000)/4; seed++ {
		w := newWorld(tape.New(seed), nil)
		if p := &w.plan; p.outage || p.loses || p.second || p.restores || p.misses || p.unseen || p.fromTime || p.malformed {
			continue
		}
		n++
		w.work = (*thread).published
		w.after(90*time.Minute, w.endPublished)
		w.after(130*time.Minute, w.goOnBehind)
		w.run(func() bool { return w.calm && w.finished() || len(w.wrong) > 0 })
		until := w.now + 31*time.Hour
		w.run(func() bool { return w.now > until || len(w.wrong) > 0 })
		if len(w.wrong) == 0 {
			l, k := w.checkAdopted()
			lost, kept = lost+l, kept+k
		}
		w.end()
		if len(w.wrong) > 0 {
			t.Fatalf("%s\nrepeat it with: go test ./archive -run TestAdoptedWorlds -histories 4 -seed %d", w.wrong, seed)
		}
	}
	t.Logf("the published program had stored %d records, and lost %d that the archive has stored", kept, lost)
	if *histories >= 2000 && (lost == 0 || kept == 0) { // fewer may show nothing
		t.Error("the worlds are too kind")
	}
}

// endPublished ends all processes for good.
func (w *world) endPublished() {
	for _, t := range w.threads {
		t.dead = true
	}
	w.work = func(*thread) {}
	*w.table = *newTable()
}

// goOnBehind lets an operator recover, and starts workers. What was late has landed.
func (w *world) goOnBehind() {
	w.work = nil
	w.recovers(w.table, 0)
	for range w.plan.procs {
		w.worker(w.table)
	}
}

// checkAdopted counts the records that the archive has stored although they are older
// than the claim, and those that the other program had stored.
func (w *world) checkAdopted() (lost, kept int) {
	theirs, ours := map[string]int{}, map[string]int{}
	for key, o := range w.objects {
		n := ours
		if _, ok := adoptedMinute("p/", key); ok {
			n = theirs
		} else if !o.data || o.name.Format == GapFormat || o.name.Format == KeptFormat {
			continue
		}
		for _, e := range decodeLines(o.body) {
			for _, r := range e.Records {
				n[string(r.Data)]++
			}
		}
	}
	for _, s := range w.stream.shards {
		if _, ok := w.progress(s.ID); !ok {
			continue
		}
		for _, e := range s.entries {
			gap := slices.ContainsFunc(w.holders(s.ID, e.Number), func(key string) bool { return w.objects[key].name.Format == GapFormat })
			for _, r := range e.Records {
				their, our := theirs[string(r.Data)], ours[string(r.Data)]
				switch {
				case their > 0 && our > 0, our > 1:
					w.violated("A2", "record %s of %s, %s was stored %d times before, and %d times by the archive", r.Data, s.ID, e.Number, their, our)
				case their == 0 && our == 0 && !gap && w.owed(s, e):
					w.violated("A1", "record %s of %s, %s is not stored", r.Data, s.ID, e.Number)
				case their > 0:
					kept++
				case e.at < w.first["p/"+reserved+"archive"] && our > 0:
					lost++
				}
			}
		}
	}
	for _, f := range w.verify(w.truth()).Findings {
		if f.Kind != Overlap || f.Shard != "" { // that program has stored some twice
			w.violated("A4", "Verify: %+v", f)
		}
	}
	return lost, kept
}
