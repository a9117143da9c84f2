package world

import (
	"time"

	"github.com/pawlhq/pawl/files"
	"github.com/pawlhq/pawl/internal/simkit"
	"github.com/pawlhq/pawl/store/memory"
)

// Simulation simulates worlds of package files.
var Simulation = simkit.Simulation[*threads]{Threads: newThreads, RunWorld: runWorld}

const faultWindow = 8 * time.Hour

func runWorld(threads *threads, kernel *simkit.World) {
	w := &World{
		World: kernel, threads: threads, records: memory.New(), usage: map[string][]usageAt{},
		objects: map[string]files.Promise{}, models: map[string]*fileModel{},
	}
	w.index = files.NewIndex(w.records)
	for i := range w.processes {
		w.processes[i] = newProcess(w)
	}
	w.limit = files.Usage{Bytes: 100 * files.MinCharge, Open: 100}
	if w.Tape.Chance(300) {
		w.limit.Bytes = 2 * files.MinCharge
	}
	if w.Tape.Chance(100) {
		w.limit.Open = 1
	}
	w.times = drawTimes(w.Tape)
	for i := range w.skews {
		w.skews[i] = w.Tape.UpTo(w.times.Skew-time.Second) - w.times.Skew/2
	}
	w.faultRate = []int{0, 20, 60, 150}[w.Tape.Choose(4)]
	w.lossRate = []int{0, 200, 1000}[w.Tape.Choose(3)]
	for n := range 1 + w.Tape.Choose(4) {
		w.user(n)
	}
	if w.Tape.Chance(300) {
		w.After(w.Tape.UpTo(faultWindow), func() { w.audit(w.Tape.Choose(nodes)) })
	}
	if w.Tape.Chance(50) {
		w.After(w.Tape.UpTo(faultWindow), w.putOrphan)
	}
	w.runEvents()
	w.quiesce()
}

func (w *World) quiesce() {
	w.faultless = true
	w.Now = max(w.Now, faultWindow)
	for range 100 {
		due, found := w.nextDue()
		if !found {
			break
		}
		w.Now = max(w.Now, due-w.skews[0])
		w.sweep(0)
		w.runEvents()
	}
	w.checkNotified()
	w.checkQuiescent(false)
	w.Now += w.times.Parts + w.times.Upload + 2*w.times.Skew
	w.audit(0)
	w.runEvents()
	w.checkAudited()
	if n := len(w.threads.Running); n > 0 {
		w.Violatef("", "%d requests do not end", n)
	}
	w.threads.Abort()
	w.checkQuiescent(true)
}

func (w *World) nextDue() (at time.Duration, found bool) {
	for _, t := range w.models {
		if look := t.row.DueAt; !look.IsZero() && (!found || look.Sub(epoch) < at) {
			at, found = look.Sub(epoch), true
		}
	}
	return at, found
}
