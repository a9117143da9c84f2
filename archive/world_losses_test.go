package archive

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pawlhq/pawl/internal/simkit"
)

// restoreRegisters copies the registers. Later all processes die, and registers and fencing tokens
// return to the copy. An operator eventually recovers.
//
// A PUT of an intent from between the copy and the restore never lands, because no owner can know
// of it. Operators must therefore recover after a restore.
func (w *world) restoreRegisters(in time.Duration) {
	table, registers, tokens := w.table, maps.Clone(w.table.registers), maps.Clone(w.tokens)
	w.After(simkit.Pick(w.Tape, time.Second, time.Minute, in), func() {
		w.Tracef("all processes die, and the registers go back to an earlier moment")
		for _, t := range w.threads {
			if !t.dead {
				t.dead = true
				w.After(w.Tape.UpTo(5*time.Minute), func() { w.worker(w.table) })
			}
		}
		w.noteLoss()
		table.registers, w.tokens = registers, tokens
		w.scheduleRecovery(table, w.Tape.UpTo(2*time.Hour))
	})
}

func (w *world) loseRegister() {
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(w.table.registers)), func(name string) bool {
		return !strings.HasPrefix(name, "archive/x/shard/")
	})
	if len(names) == 0 {
		return
	}
	name := names[w.Tape.Choose(len(names))]
	w.Tracef("%s is lost", name)
	w.noteLoss()
	delete(w.table.registers, name)
	w.scheduleRecovery(w.table, w.Tape.UpTo(2*time.Hour))
}

func (w *world) noteLoss() {
	w.losses++
	clear(w.mustFind)
}

// noteListed records which shards a process must find. A parent above the highest listed shard
// without a register was never listed, and must become a gap.
func (t *thread) noteListed(all []Shard) {
	highest := t.highestShard()
	if highest == "" || t.table != t.claimedLedger() {
		return
	}
	for id := range t.mustFind {
		if t.table.registers["archive/x/shard/"+id] == nil && !t.retired[id] {
			delete(t.mustFind, id) // unless it is still a parent: nothing else names it
		}
	}
	for _, s := range all {
		for _, parent := range s.Parents {
			listed := slices.ContainsFunc(all, func(s Shard) bool { return s.ID == parent })
			if !listed && compareIDs(highest, parent) < 0 {
				t.Tracef("%s was born and closed unseen", parent)
				t.mustFind[parent] = true
			}
		}
	}
}

func (t *thread) highestShard() string {
	var m marker
	if r := t.table.registers["archive/x/table"]; r != nil {
		_ = json.Unmarshal(r.value, &m)
	}
	return m.Highest
}

func (t *thread) checkRemoved(name string, r *register) {
	id, ok := strings.CutPrefix(name, "archive/x/shard/")
	if !ok {
		return
	}
	p, err := decodeProgress(r.value)
	s := t.stream.find(id)
	if err != nil || p.State != Finished || s.closed == 0 || t.Now < s.closed+t.plan.retention {
		t.Violatef("A1", "the register of %s is removed, and the shard is %s", id, p.State)
	}
	t.retired[id] = id != t.deleted // an object that an operator deleted stays missing
}
