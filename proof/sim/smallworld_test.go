package sim

import (
	"cmp"
	"slices"
	"time"

	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/internal/simkit"
	"github.com/pawlhq/pawl/ledger"
)

// scope is a world small enough to explore: two workers, one object, and a few changes.
type scope struct {
	name    string
	kind    kindOf
	trusted bool
	changes []event.Kind
	crashes int // of processes, at any moment
	stalls  int // clock advances although a process has work
	// fineGrained lets an engine process several inputs at once; see idle.
	fineGrained bool
	short       bool
}

// Few distinct times make few states: durations are multiples of ten seconds, or zero plus a delay.
// All late requests land before a verification, as the protocol requires.
var smallPolicy = ledger.Policy{
	TTL: 30 * time.Second, Skew: 10 * time.Second, Attempts: 4, Base: 20 * time.Second, Max: 20 * time.Second,
	LateWriteWindow: 24 * time.Hour, RowRetention: retain,
}

// maxNear bounds the distance of all events except verifications.
const maxNear = time.Hour

type smallWorld struct {
	*World
	scope   *scope
	changed int
	stalls  int
	options []option
}

type option struct {
	entry int // in the queue; unused if crash is set
	draw  uint32
	crash *node // nil if the option executes an event
	lost  int   // bit mask of the pending requests that never land
}

func (s *scope) newWorld(pool *threadPool) *smallWorld {
	w := &World{
		World: simkit.World{Tape: simkit.ReplayTape(nil), Now: maxNear}, pool: pool, explored: true, policy: smallPolicy, store: &refStore{}, faultsEnd: 100_000 * maxNear,
		// No faults, but processes can crash.
		plan: plan{pipelines: []kindOf{s.kind}, trusted: s.trusted, tasks: 4, batch: 8, cache: 8, attempts: smallPolicy.Attempts, faulty: 1, weakFactor: 1},
	}
	w.objectStore = objectStore{world: w, stored: map[event.Object]*storedObject{}}
	w.build()
	for range 2 {
		w.startWorker()
	}
	w.loop()
	m := &smallWorld{World: w, scope: s}
	w.At(w.Now, (*user)(m))
	return m
}

type user smallWorld

// On the store's clock, changes are one second apart.
func (u *user) Run() {
	w, now := u.World, u.Now
	w.plan.removes = 0
	if u.scope.changes[u.changed] == event.Removed {
		w.plan.removes = 1000
	}
	u.changed++
	w.Now = time.Duration(u.changed) * time.Second
	w.change(w.objects[0])
	w.Now = now
	if u.changed < len(u.scope.changes) {
		w.At(now, u)
	}
}

// nextOptions returns scheduled events first, then crashes. It returns none at rest.
func (m *smallWorld) nextOptions() []option {
	m.tidy()
	list := m.Queue.Entries
	for i := range list {
		switch do := list[i].Event.(type) {
		case *task:
			list[i].At = max(list[i].At, do.deadline) // after a renewal
		case *engineTimer:
			list[i].At = list[i].At.Truncate(10 * time.Second) // it was due, and scheduled for the next millisecond
		}
	}
	slices.SortFunc(list, func(a, b simkit.Entry) int { return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.N, b.N)) })
	busy := slices.ContainsFunc(list, func(a simkit.Entry) bool { return !m.isVerification(a) && !mayWait(a.Event) })
	m.options = m.options[:0]
	for i, a := range list {
		if busy && m.isVerification(a) || m.stalls == m.scope.stalls && m.causesStall(a) {
			continue
		}
		paths := 1
		switch do := a.Event.(type) {
		case *thread:
			if do.pending != nil {
				continue // until its request lands
			}
		case *message:
			paths = len(m.nodes)
		}
		for draw := range paths {
			m.options = append(m.options, option{entry: i, draw: uint32(draw)})
		}
	}
	if len(list) > 0 && m.crashes < m.scope.crashes {
		m.options = m.addCrashes(m.options)
	}
	return m.options
}

// Each pending request may land later or never, which includes a crash just before it.
func (m *smallWorld) addCrashes(options []option) []option {
	for _, n := range m.nodes {
		for lost := range 1 << len(m.inFlight(n)) {
			options = append(options, option{crash: n, lost: lost})
		}
	}
	return options
}

func (m *smallWorld) isVerification(a simkit.Entry) bool { return a.At > m.Now+maxNear }

// An event may be arbitrarily late if it belongs neither to a running process nor to a pending
// request.
func mayWait(do simkit.Event) bool {
	switch do.(type) {
	case *user, *message, *workerStart:
		return true
	}
	return false
}

// A request of an ended process may be late.
func mustBeOnTime(do simkit.Event) bool {
	switch do := do.(type) {
	case *thread:
		return do.pending == nil // otherwise its request decides
	case *requestArrival:
		return !do.node.gone
	}
	return !mayWait(do)
}

// causesStall reports whether the entry makes other events late.
func (m *smallWorld) causesStall(a simkit.Entry) bool {
	return a.At > m.Now && slices.ContainsFunc(m.Queue.Entries, func(b simkit.Entry) bool { return b.At < a.At && mustBeOnTime(b.Event) })
}

func (m *smallWorld) execute(o option) {
	m.Steps++
	if o.crash != nil {
		m.crash(o)
		return
	}
	a := m.Queue.Entries[o.entry]
	m.Queue.Entries = slices.Delete(m.Queue.Entries, o.entry, o.entry+1)
	if m.causesStall(a) {
		m.stalls++
	}
	m.Now = max(m.Now, a.At)
	m.Tape.Rewind(o.draw)
	m.run(a.Event)
	m.Tape.Rewind()
}

func (m *smallWorld) crash(o option) {
	m.crashes++
	for i, t := range m.inFlight(o.crash) {
		if o.lost&(1<<i) != 0 {
			t.pending = nil
			m.removeEntries(func(a simkit.Entry) bool { return a.Event == simkit.Event((*requestArrival)(t)) })
		}
	}
	o.crash.crash()
}

func (m *smallWorld) inFlight(n *node) []*thread {
	var all []*thread
	for _, a := range m.Queue.Entries {
		if l, ok := a.Event.(*requestArrival); ok && l.node == n {
			all = append(all, (*thread)(l))
		}
	}
	return all
}

type woken struct{}

// A thread whose request has landed continues at once.
func (m *smallWorld) run(do simkit.Event) {
	if t, ok := do.(*thread); ok {
		t.observe(woken{})
	}
	do.Run()
	if l, ok := do.(*requestArrival); ok {
		t := (*thread)(l)
		m.removeEntries(func(a simkit.Entry) bool { return a.Event == simkit.Event(t) })
		m.run(t)
	}
}

func (m *smallWorld) removeEntries(which func(simkit.Entry) bool) (a simkit.Entry, ok bool) {
	i := slices.IndexFunc(m.Queue.Entries, which)
	if i < 0 {
		return a, false
	}
	a = m.Queue.Entries[i]
	m.Queue.Entries = slices.Delete(m.Queue.Entries, i, i+1)
	return a, true
}

// tidy removes entries without effect, and executes those whose order does not matter.
func (m *smallWorld) tidy() {
	for {
		a, ok := m.removeEntries(m.idle)
		if !ok {
			return
		}
		switch a.Event.(type) {
		case *thread, *engineStep:
			m.run(a.Event)
		}
	}
}

// An entry is idle if it has no effect, or commutes with everything that other processes can do
// before it. Therefore an engine processes each input as it arrives, and a lease never ends between
// two requests that no other process can influence. Fine-grained scopes lack these restrictions.
func (m *smallWorld) idle(a simkit.Entry) bool {
	switch do := a.Event.(type) {
	case *engineStep:
		return do.gone || !m.scope.fineGrained
	case *engineTimer:
		return do.gone || do.tickAt != do.at
	case *task:
		return do.ended || do.node.gone
	case *thread:
		return do.pending == nil && (do.node.gone || !m.scope.fineGrained && m.readsUnchanging(do))
	case *message:
		return do.acked
	}
	return false
}

// readsUnchanging includes queries of due rows: their result may be outdated when it is used, but
// so may the state that a claim expects.
func (m *smallWorld) readsUnchanging(t *thread) bool {
	switch t.observed[len(t.observed)-1] {
	case StepLook, StepFetch:
		return m.changed == len(m.scope.changes)
	case StepDue:
		return true
	}
	return false
}
