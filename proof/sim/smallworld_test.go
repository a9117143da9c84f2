package sim

import (
	"cmp"
	"slices"
	"time"

	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/internal/simkit"
	"github.com/pawlhq/pawl/ledger"
)

// scope is a world so small that all its histories can be had: two workers, one
// object, and a user who changes it a few times.
type scope struct {
	name    string
	kind    kindOf
	trusted bool         // the dialect's sequencers
	changes []event.Kind // what the user does
	crashes int          // of processes, at any moment
	stalls  int          // moments in which time passes though a process has something to do
	// fineGrained has nothing taken together that need not be; see idle.
	fineGrained bool
	short       bool // explored with -short, too
}

// The times of a small world are few, so that its states are: everything takes
// a multiple of ten seconds, or no time at all but as long as it is late. A
// verification is so far off that all that is late has happened by then: that
// nothing is later than the horizon is what the protocol demands.
var smallPolicy = ledger.Policy{
	TTL: 30 * time.Second, Skew: 10 * time.Second, Attempts: 4, Base: 20 * time.Second, Max: 20 * time.Second,
	LateWriteWindow: 24 * time.Hour, RowRetention: retain,
}

// maxNear is how far off anything but a verification can be.
const maxNear = time.Hour

// smallWorld is a world of a scope.
type smallWorld struct {
	*World
	scope   *scope
	changed int // what the user has done so far
	stalls  int
	options []option
}

// option is something that can happen next.
type option struct {
	entry int    // in the queue; unless a process crashes
	draw  uint32 // the first choice that it makes
	crash *node
	lost  int // which of its requests on their path then never land
}

// newWorld makes a world whose workers have started and found nothing to do.
func (s *scope) newWorld(pool *threadPool) *smallWorld {
	w := &World{
		World: simkit.World{Tape: simkit.ReplayTape(nil), Now: maxNear}, pool: pool, explored: true, policy: smallPolicy, store: &refStore{}, faultsEnd: 100_000 * maxNear,
		// Faults are none of the tape's, but there are crashes.
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

// user is a small world whose user makes the next change.
type user smallWorld

// run makes a change. By the store's clock, which nothing is compared with, the
// changes are a second apart.
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

// nextOptions returns all that can happen, the planned first and what is worse later.
// There is nothing when the world is at rest.
func (m *smallWorld) nextOptions() []option {
	m.tidy()
	list := m.Queue.Entries
	for i := range list {
		switch do := list[i].Event.(type) {
		case *task:
			list[i].At = max(list[i].At, do.deadline) // its lease was renewed
		case *engineTimer:
			list[i].At = list[i].At.Truncate(10 * time.Second) // one that is due is planned for the next millisecond
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
				continue // its request has to land first
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

// addCrashes adds that a process crashes. Each of its requests on their path may
// land yet, or never: so no crash just before a request is missed.
func (m *smallWorld) addCrashes(options []option) []option {
	for _, n := range m.nodes {
		for lost := range 1 << len(m.inFlight(n)) {
			options = append(options, option{crash: n, lost: lost})
		}
	}
	return options
}

// isVerification reports that an entry is a verification's.
func (m *smallWorld) isVerification(a simkit.Entry) bool { return a.At > m.Now+maxNear }

// mayWait reports that something may be as late as it likes: it belongs neither
// to a process that runs nor to a request on its path.
func mayWait(do simkit.Event) bool {
	switch do.(type) {
	case *user, *message, *workerStart:
		return true
	}
	return false
}

// mustBeOnTime reports that something is late if it does not happen in its time. A
// request whose process is gone may be on its path for long.
func mustBeOnTime(do simkit.Event) bool {
	switch do := do.(type) {
	case *thread:
		return do.pending == nil // else what counts is its request
	case *requestArrival:
		return !do.node.gone
	}
	return !mayWait(do)
}

// causesStall reports that time passes for an entry, and makes others late.
func (m *smallWorld) causesStall(a simkit.Entry) bool {
	return a.At > m.Now && slices.ContainsFunc(m.Queue.Entries, func(b simkit.Entry) bool { return b.At < a.At && mustBeOnTime(b.Event) })
}

// execute lets an option happen.
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

// inFlight returns the threads of a process whose requests are on their path.
func (m *smallWorld) inFlight(n *node) []*thread {
	var all []*thread
	for _, a := range m.Queue.Entries {
		if l, ok := a.Event.(*requestArrival); ok && l.node == n {
			all = append(all, (*thread)(l))
		}
	}
	return all
}

// woken stands in what a thread has heard for every time that it went on.
type woken struct{}

// run lets something happen. A thread whose request has landed goes on at once.
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

// removeEntries removes an entry from the queue, and returns it.
func (m *smallWorld) removeEntries(which func(simkit.Entry) bool) (a simkit.Entry, ok bool) {
	i := slices.IndexFunc(m.Queue.Entries, which)
	if i < 0 {
		return a, false
	}
	a = m.Queue.Entries[i]
	m.Queue.Entries = slices.Delete(m.Queue.Entries, i, i+1)
	return a, true
}

// tidy removes what would do nothing, and lets happen what concerns nobody else.
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

// idle reports that there is no choice of when an entry happens: it would
// do nothing, or what it does commutes with all that others can do meanwhile.
// Two things are restrictions: that an engine takes an input as it comes in, and
// does not find several at a time; and that a lease never ends between two looks
// that nobody else can disturb. Where the scope is fine they do not hold.
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

// readsUnchanging reports that a thread reads what nobody can change any more: the
// input when the user is done. And where it asks for due rows: what it is told
// may be stale when it is used, but so may be what a claim expects.
func (m *smallWorld) readsUnchanging(t *thread) bool {
	switch t.observed[len(t.observed)-1] {
	case StepLook, StepFetch:
		return m.changed == len(m.scope.changes)
	case StepDue:
		return true
	}
	return false
}
