package world

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawlhq/pawl/files"
	"github.com/pawlhq/pawl/internal/tape"
	"github.com/pawlhq/pawl/store/memory"
)

// Failure is a world in which something went wrong.
type Failure struct {
	Seed       uint64
	Violations []string
	Story      []string
}

// Run plays the worlds of n seeds from first on, and returns that of the smallest
// seed found that fails, or nil.
func Run(first, n uint64) *Failure {
	var taken atomic.Uint64
	var mu sync.Mutex
	var failed *Failure
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			p := &pool{}
			defer p.close()
			for i := taken.Add(1) - 1; i < n; i = taken.Add(1) - 1 {
				v := play(p, first+i, nil)
				if len(v) == 0 {
					continue
				}
				mu.Lock()
				if failed == nil || first+i < failed.Seed {
					failed = &Failure{Seed: first + i, Violations: v}
				}
				mu.Unlock()
				taken.Store(n)
			}
		})
	}
	wg.Wait()
	if failed != nil {
		p := &pool{}
		defer p.close()
		play(p, failed.Seed, func(format string, args ...any) {
			failed.Story = append(failed.Story, fmt.Sprintf(format, args...))
		})
	}
	return failed
}

// window is how long there are troubles.
const window = 8 * time.Hour

// play plays the world of a seed, and returns what went wrong.
func play(p *pool, seed uint64, story func(string, ...any)) []string {
	w := &World{
		tape: tape.New(seed), pool: p, records: memory.New(), usage: map[string][]usageAt{},
		objects: map[string]files.Promise{}, truths: map[string]*truth{}, story: story,
	}
	w.index = files.NewIndex(w.records)
	for i := range w.processes {
		w.processes[i] = newProcess(w)
	}
	w.limit = files.Usage{Bytes: 100 * files.MinCharge, Open: 100}
	if w.tape.Chance(300) {
		w.limit.Bytes = 2 * files.MinCharge
	}
	if w.tape.Chance(100) {
		w.limit.Open = 1
	}
	w.times = drawTimes(w.tape)
	for i := range w.skews {
		w.skews[i] = w.tape.UpTo(w.times.Skew-time.Second) - w.times.Skew/2
	}
	w.trouble = []int{0, 20, 60, 150}[w.tape.Choose(4)]
	w.loses = []int{0, 200, 1000}[w.tape.Choose(3)]
	for n := range 1 + w.tape.Choose(4) {
		w.user(n)
	}
	if w.tape.Chance(300) {
		w.after(w.tape.UpTo(window), func() { w.audit(w.tape.Choose(nodes)) })
	}
	if w.tape.Chance(50) {
		w.after(w.tape.UpTo(window), w.litter)
	}
	w.loop()
	w.rest()
	return w.violations
}

// rest lets the timers of all rows run out, without further troubles.
func (w *World) rest() {
	w.calm = true
	w.now = max(w.now, window)
	for range 100 {
		due, found := w.nextLook()
		if !found {
			break
		}
		w.now = max(w.now, due-w.skews[0])
		w.sweep(0)
		w.loop()
	}
	w.checkHeard()
	w.checkRest(false)
	w.now += w.times.Parts + w.times.Upload + 2*w.times.Skew
	w.audit(0)
	w.loop()
	w.checkAudited()
	if w.running > 0 {
		w.violate("%d requests never end", w.running)
	}
	w.checkRest(true)
}

// nextLook returns when the next row is due.
func (w *World) nextLook() (at time.Duration, found bool) {
	for _, t := range w.truths {
		if look := t.row.LookAt; !look.IsZero() && (!found || look.Sub(epoch) < at) {
			at, found = look.Sub(epoch), true
		}
	}
	return at, found
}
