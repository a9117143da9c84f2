package archive

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl/internal/simkit"
	"github.com/pawlhq/pawl/internal/simkit/simtest"
)

var worlds = simkit.Simulation[*pool]{Threads: newPool, RunWorld: playWorld}

// Invariants at the end of each world:
//
//	A1  every record is stored, or in a gap
//	A2  no record is stored twice, or no record is both stored and in a gap; no object is overwritten
//	A3  every record in a gap had expired
//	A4  Verify reports the same
//	A5  all shards are finished some time after the faults have ended
//	A6  nothing of a shard is stored before all of its parents
//	A7  an aggregate is in one object
//	A8  an object's minute is no earlier than any arrival in it
//	A9  a malformed record is stored

func (p *plan) faultsEnd() time.Duration {
	if p.outage {
		return 48 * time.Hour
	}
	return 3 * time.Hour
}

func playWorld(pool *pool, kernel *simkit.World) {
	w := newWorld(pool, kernel)
	defer pool.Abort()
	w.run(func() bool { return w.calm && w.finished() || len(w.Violations) > 0 })
	if len(w.Violations) == 0 {
		until := w.Now + 31*time.Hour // until paused processes wake up
		w.run(func() bool { return w.Now > until })
		w.run(func() bool { return w.finished() }) // one of them may have started a shard that is gone
		w.check()
	}
}

func newWorld(pool *pool, kernel *simkit.World) *world {
	w := &world{
		World: kernel, pool: pool, plan: drawPlan(kernel.Tape), objects: map[string]*object{}, table: newTable(),
		tokens: map[string]int64{}, first: map[string]time.Duration{},
		mustFind: map[string]bool{}, retired: map[string]bool{},
	}
	w.stream.next = 960
	w.tables = append(w.tables, w.table)
	w.Tracef("%+v", w.plan)
	w.shard()
	if w.Tape.Chance(500) {
		w.shard()
	}
	for range w.plan.puts {
		w.After(w.Tape.UpTo(w.plan.faultsEnd()), w.put)
	}
	for range w.plan.reshards {
		w.After(w.Tape.UpTo(w.plan.faultsEnd()), w.reshard)
	}
	for range w.plan.procs {
		w.After(w.Tape.UpTo(30*time.Minute), func() { w.worker(w.table) })
	}
	if w.plan.outage {
		w.After(w.Tape.UpTo(4*time.Hour), w.startOutage)
	}
	if w.plan.loses {
		w.After(w.Tape.UpTo(w.plan.faultsEnd()), w.loseRegisters)
	}
	if w.plan.restores {
		w.After(w.Tape.UpTo(w.plan.faultsEnd()), func() { w.restoreRegisters(w.Tape.UpTo(w.plan.faultsEnd() - w.Now)) })
	}
	if w.plan.misses {
		w.After(w.Tape.UpTo(w.plan.faultsEnd()), w.loseRegister)
	}
	if w.plan.second {
		w.After(w.Tape.UpTo(w.plan.faultsEnd()), w.addLedger)
	}
	w.After(w.plan.faultsEnd(), w.calmDown)
	return w
}

func (w *world) startOutage() {
	w.Tracef("all processes die")
	n := 0
	for _, t := range w.threads {
		if !t.dead {
			t.dead = true
			n++
		}
	}
	if w.plan.unseen {
		w.After(w.Tape.UpTo(time.Hour), w.reshard)
		w.After(w.Tape.UpTo(time.Hour), w.reshard)
	}
	w.After(20*time.Hour+w.Tape.UpTo(20*time.Hour), func() {
		for range max(n, 1) {
			w.worker(w.table)
		}
	})
}

func (w *world) loseRegisters() {
	w.Tracef("the registers are lost")
	w.table.registers = map[string]*register{}
	clear(w.mustFind)
	if keys := w.stored(); len(keys) > 0 && w.Tape.Chance(400) {
		key := keys[w.Tape.Choose(len(keys))]
		w.deleted = w.objects[key].name.Shard
		w.Tracef("%s is deleted by hand", key)
		delete(w.objects, key)
		delete(w.retired, w.deleted) // no worker notices the deletion
	}
	w.scheduleRecovery(w.table, simkit.Pick(w.Tape, w.Tape.UpTo(time.Hour), w.Tape.UpTo(time.Minute)))
}

func (w *world) addLedger() {
	w.Tracef("there is another ledger")
	t := newTable()
	w.tables = append(w.tables, t)
	w.worker(t)
	if w.Tape.Chance(500) {
		w.scheduleRecovery(t, w.Tape.UpTo(time.Hour))
	}
}

func (w *world) scheduleRecovery(over *table, in time.Duration) {
	p := &proc{world: w, table: over, id: len(w.threads), format: "a", knows: "abc"}
	w.After(in, func() {
		w.table = over
		p.spawn((*thread).recover)
	})
}

func (t *thread) recover() {
	for {
		c, err := t.archive().Recover(threadContext{context.Background(), t})
		t.Tracef("recovered: %+v, %v", c, err)
		if err == nil && t.highestShard() == "" {
			clear(t.mustFind) // no register tells which shards were listed before
		}
		if err == nil && t.claimedLedger() == t.table && t.calm {
			t.world.table = t.table
			t.world.worker(t.table)
		}
		if err == nil {
			return
		}
		t.dead = false // the operator tries again
		t.wait(10 * time.Minute)
		if errors.Is(err, ErrClaimed) && t.claimedLedger() == t.table {
			return // workers have claimed the prefix
		}
	}
}

func (w *world) calmDown() {
	w.Tracef("calm")
	w.calm = true
	for _, s := range w.open() {
		w.closeShard(s)
	}
	w.shard()
	if t := w.claimedLedger(); t != nil {
		w.table = t
	}
	w.worker(w.table)
}

func (w *world) finished() bool {
	for _, s := range w.stream.shards {
		p, ok := w.progress(s.ID)
		if s.closed == 0 || ok && p.State == Finished || !ok && w.retired[s.ID] {
			continue
		}
		if s.closed+w.plan.retention > w.Now || ok || w.mustFind[s.ID] {
			return false
		}
	}
	return true
}

func (w *world) progress(shard string) (Progress, bool) {
	t := w.claimedLedger()
	if t == nil {
		return Progress{}, false
	}
	r := t.registers["archive/x/shard/"+shard]
	if r == nil {
		return Progress{}, false
	}
	if r.progress == nil {
		p, _ := decodeProgress(r.value)
		r.progress = &p
	}
	return *r.progress, r.progress.Format != "" && r.progress.Generation == w.claim.Generation
}

func (w *world) claimedLedger() *table {
	if o := w.objects[ClaimKey("p/")]; o != w.claimed {
		w.claimed, w.claim = o, Claim{}
		_ = json.Unmarshal(o.body, &w.claim)
	}
	name := []byte(`"table":"` + w.claim.Table + `"`)
	i := slices.IndexFunc(w.tables, func(t *table) bool {
		marker := t.registers["archive/x/table"]
		return marker != nil && bytes.Contains(marker.value, name)
	})
	if i < 0 {
		return nil
	}
	return w.tables[i]
}

func (w *world) landed(key string, o, old *object) {
	if _, ok := w.first[key]; !ok {
		w.first[key] = w.Now
	}
	if strings.HasPrefix(key, "p/"+reserved) || w.work != nil {
		return
	}
	if old != nil {
		w.Violatef("A2", "%s is written over", key)
	}
	n := o.name
	if n.Shard == "" {
		w.Violatef("A4", "%s is no key of an archive", key)
		return
	}
	if _, ok := w.first[n.Shard]; !ok {
		w.first[n.Shard] = w.Now
	}
	s := w.stream.find(n.Shard)
	for _, e := range s.records {
		if n.Format == GapFormat && n.Contains(e.Number) && e.at+w.plan.retention > w.Now && e.Malformed == nil && w.mustBeStored(s, e) {
			w.Violatef("A3", "%s is in the gap %s, and could be read", e.Number, key)
		}
		if n.Format != GapFormat && o.data && n.Contains(e.Number) && w.mustBeStored(s, e) && minute(e.Arrival).After(n.Minute) {
			w.Violatef("A8", "%s arrived at %s, and is in %s", e.Number, e.Arrival, key)
		}
	}
	for _, parent := range s.Parents {
		p := w.stream.find(parent)
		for _, e := range p.records {
			if parent != w.deleted && w.mustBeStored(p, e) && e.at+w.plan.retention > w.Now && len(w.holders(parent, e.Number)) == 0 {
				w.Violatef("A6", "%s is stored before %s of %s", key, e.Number, parent)
			}
		}
	}
}

// A record must be stored if it arrived after the claim, or could be read when its shard's first
// object was stored.
func (w *world) mustBeStored(s *simShard, e simRecord) bool {
	claimed, ok := w.first["p/"+reserved+"archive"]
	stored, any := w.first[s.ID]
	if !(ok && e.at >= claimed || any && e.at+w.plan.retention > stored) {
		return false
	}
	return !w.plan.fromTime || !e.Arrival.Before(epoch.Add(30*time.Minute))
}

func (w *world) holders(shard string, number Number) (keys []string) {
	for key, o := range w.objects {
		if o.data && o.name.Shard == shard && o.name.Contains(number) {
			keys = append(keys, key)
		}
	}
	return keys
}

func (w *world) check() {
	stored := map[string][]string{} // keys by data
	for key, o := range w.objects {
		if !o.data || o.name.Format == GapFormat {
			continue
		}
		for _, e := range decodeLines(o.body) {
			for _, r := range e.UserRecords {
				stored[string(r.Data)] = append(stored[string(r.Data)], key)
			}
		}
	}
	for _, s := range w.stream.shards {
		if _, ok := w.progress(s.ID); !ok && !w.retired[s.ID] {
			continue // the shard was gone before a process could read it
		}
		for _, e := range s.records {
			if w.mustBeStored(s, e) {
				w.checkRecord(s, e, stored)
			}
		}
	}
	w.checkVerify()
}

func (w *world) checkRecord(s *simShard, e simRecord, stored map[string][]string) {
	holders := w.holders(s.ID, e.Number)
	if len(holders) == 0 {
		w.Violatef("A1", "%s of %s is in no object", e.Number, s.ID)
	}
	if len(holders) > 1 {
		w.Violatef("A2", "%s of %s is in %v", e.Number, s.ID, holders)
	}
	if len(holders) != 1 {
		return
	}
	gap := strings.HasSuffix(holders[0], GapFormat)
	in := ""
	for _, r := range e.UserRecords {
		keys := stored[string(r.Data)]
		switch {
		case len(keys) == 0 && !gap:
			w.Violatef("A1", "record %s of %s, %s is not stored", r.Data, s.ID, e.Number)
		case len(keys) > 1 || len(keys) == 1 && gap:
			w.Violatef("A2", "record %s of %s, %s is in %v and %v", r.Data, s.ID, e.Number, keys, holders)
		case len(keys) == 1 && in != "" && keys[0] != in:
			w.Violatef("A7", "%s of %s is in %s and %s", e.Number, s.ID, in, keys[0])
		case len(keys) == 1:
			in = keys[0]
		}
	}
	if e.Malformed != nil && !gap && w.objects["p/"+reserved+"malformed/"+s.ID+"-"+string(e.Number)+".json"] == nil {
		w.Violatef("A9", "%s of %s is not kept", e.Number, s.ID)
	}
}

func (w *world) stored() (keys []string) {
	for key, o := range w.objects {
		if o.data {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

func (w *world) verify(over *table) *Report {
	r, done := &Report{}, false
	w.Now += time.Minute
	p := &proc{world: w, table: over, id: -1, format: "a", knows: "abc"}
	p.spawn(func(t *thread) {
		defer func() { done = true }()
		found, err := t.archive().Verify(threadContext{context.Background(), t}, VerifyOptions{Deep: true})
		if err != nil {
			w.Violatef("A4", "%v", err)
			return
		}
		r = found
		r.Findings = slices.DeleteFunc(r.Findings, func(f Finding) bool {
			_, known := w.progress(f.Shard)
			return f.Kind == Missing && f.Shard == w.deleted && !known // cannot be repaired
		})
	})
	w.run(func() bool { return done })
	return r
}

func (w *world) checkVerify() {
	over := w.claimedLedger()
	if w.claimed == nil {
		return
	}
	if over == nil {
		w.Violatef("A5", "no ledger has the registers of the archive")
		return
	}
	want := len(w.Violations) == 0
	if r := w.verify(over); (len(r.Findings) == 0) != want {
		w.Violatef("A4", "Verify: %+v", r)
	}
	if !want || len(w.Violations) > 0 || w.Tape.Chance(750) {
		return // to save time
	}
	keys := slices.DeleteFunc(w.stored(), func(key string) bool {
		_, ok := w.progress(w.objects[key].name.Shard)
		return !ok // the content of other shards is unknown
	})
	if len(keys) == 0 {
		return
	}
	key := keys[w.Tape.Choose(len(keys))]
	o := w.objects[key]
	delete(w.objects, key)
	r := w.verify(over)
	if _, known := w.progress(o.name.Shard); known && (len(r.Findings) != 1 || r.Findings[0].Kind != Missing) { // a worker may have removed the register
		w.Violatef("A4", "%s is missing, and Verify says %+v", key, r)
	}
	w.objects[key] = o
	n := o.name
	n.End = n.End.after()
	double := newObject(n.Key("p/"), o.ETag, o.body, o.Metadata)
	w.objects[double.Key] = double
	if r := w.verify(over); !slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Kind == Overlap && slices.Contains(f.Keys, key) }) {
		w.Violatef("A4", "%s and %s overlap, and Verify says %+v", key, n.Key("p/"), r)
	}
}

func TestWorlds(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	simtest.Worlds(t, "./archive", worldCount, worlds)
}

func TestReplay(t *testing.T) { simtest.Replay(t, worlds) }
