package sim

import (
	"cmp"
	"slices"
	"time"

	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/internal/simkit"
	"github.com/pawlhq/pawl/ledger"
)

// scope is a world small enough to explore all its histories: two workers, one object, and a user
// who changes it a few times.
type scope struct {
	name    string
	kind    kindOf
	trusted bool         // the dialect's sequencers
	changes []event.Kind // changes by the user
	crashes int          // crashes of processes, at any moment
	stalls  int          // times that the clock advances although a process has work
	// fineGrained lets an engine process several inputs at once; see idle.
	fineGrained bool
	short       bool // also explored with -short
}

// Small worlds use few distinct times, so that they have few states. Every duration is a multiple
// of ten seconds, or zero plus a delay. A verification is so far ahead that all late requests have
// landed by then, as the protocol requires of the horizon.
var smallPolicy = ledger.Policy{
	TTL: 30 * time.Second, Skew: 10 * time.Second, Attempts: 4, Base: 20 * time.Second, Max: 20 * time.Second,
	LateWriteWindow: 24 * time.Hour, RowRetention: retain,
}

// maxNear is the largest distance of any scheduled event except verifications.
const maxNear = time.Hour

// smallWorld is a world of a scope.
type smallWorld struct {
	*World
	scope   *scope
	changed int // changes made by the user so far
	stalls  int
	options []option
}

// option is a possible next event.
type option struct {
	entry int    // index of the event in the queue; unused if crash is set
	draw  uint32 // first choice of the event
	crash *node  // process that crashes; nil if the option executes an event
	lost  int    // bit mask of the pending requests that never land
}

// newWorld creates a world whose workers have started and found no work.
func (s *scope) newWorld(pool *threadPool) *smallWorld {
	w := &World{
		World: simkit.World{Tape: simkit.ReplayTape(nil), Now: maxNear}, pool: pool, explored: true, policy: smallPolicy, store: &refStore{}, faultsEnd: 100_000 * maxNear,
		// The tape draws no faults, but processes can crash.
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

// user makes the next change in a small world.
type user smallWorld

// Run makes a change. On the store's clock, which is never compared with others, the changes are
// one second apart.
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

// nextOptions returns all possible next events: scheduled events first, then crashes. It returns
// none when the world is at rest.
func (m *smallWorld) nextOptions() []option {
	m.tidy()
	list := m.Queue.Entries
	for i := range list {
		switch do := list[i].Event.(type) {
		case *task:
			list[i].At = max(list[i].At, do.deadline) // its lease was renewed
		case *engineTimer:
			list[i].At = list[i].At.Truncate(10 * time.Second) // a due timer was scheduled for the next millisecond
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
				continue // its request must land first
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

// addCrashes adds crashes of each process. Each of its pending requests may land later or never, so
// a crash just before a request is included.
func (m *smallWorld) addCrashes(options []option) []option {
	for _, n := range m.nodes {
		for lost := range 1 << len(m.inFlight(n)) {
			options = append(options, option{crash: n, lost: lost})
		}
	}
	return options
}

// isVerification reports whether an entry is a verification.
func (m *smallWorld) isVerification(a simkit.Entry) bool { return a.At > m.Now+maxNear }

// mayWait reports whether an event may be arbitrarily late: it belongs neither to a running process
// nor to a pending request.
func mayWait(do simkit.Event) bool {
	switch do.(type) {
	case *user, *message, *workerStart:
		return true
	}
	return false
}

// mustBeOnTime reports whether the event is late if it does not happen at its time. A request of an
// ended process may be late.
func mustBeOnTime(do simkit.Event) bool {
	switch do := do.(type) {
	case *thread:
		return do.pending == nil // otherwise its request decides
	case *requestArrival:
		return !do.node.gone
	}
	return !mayWait(do)
}

// causesStall reports whether executing an entry advances the clock and makes other events late.
func (m *smallWorld) causesStall(a simkit.Entry) bool {
	return a.At > m.Now && slices.ContainsFunc(m.Queue.Entries, func(b simkit.Entry) bool { return b.At < a.At && mustBeOnTime(b.Event) })
}

// execute executes an option.
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

// inFlight returns the threads of a process with pending requests.
func (m *smallWorld) inFlight(n *node) []*thread {
	var all []*thread
	for _, a := range m.Queue.Entries {
		if l, ok := a.Event.(*requestArrival); ok && l.node == n {
			all = append(all, (*thread)(l))
		}
	}
	return all
}

// woken is the observation that a thread continued.
type woken struct{}

// run executes an event. A thread whose request has landed continues at once.
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

// removeEntries removes the first matching entry from the queue, and returns it.
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

// idle reports whether the time of an entry does not matter: it has no effect, or it commutes with
// everything that other processes can do before it. This restricts the world in two ways: an engine
// processes each input as it arrives, never several at once; and a lease never ends between two
// requests that no other process can influence. Fine-grained scopes do not have these restrictions.
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

// readsUnchanging reports whether a thread reads data that cannot change any more: the input after
// the user's last change. Queries of due rows count too: their result may be outdated when it is
// used, but so may the state that a claim expects.
func (m *smallWorld) readsUnchanging(t *thread) bool {
	switch t.observed[len(t.observed)-1] {
	case StepLook, StepFetch:
		return m.changed == len(m.scope.changes)
	case StepDue:
		return true
	}
	return false
}
