package sim

import (
	"context"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"

	"github.com/pawlhq/pawl/internal/simkit"
)

// explorer goes through all states of a scope: from each it takes every option
// there is, and turns back where it has been before. Nothing can be copied, so
// it comes to a state by playing the way that leads there anew.
type explorer struct {
	scope  *scope
	arrive func(d digest, way []uint32) // is told of every arrival at a state

	mu     sync.Mutex
	more   sync.Cond
	forks  []fork
	busy   int // who may find more
	done   bool
	states map[digest]uint32
	edges  [][2]uint32
	ends   []uint32 // states at rest
	depth  int
	failed []uint32 // the way to a violation; nil: there is none
}

// fork is a way whose last step has yet to be taken, and the state before it.
type fork struct {
	way  []uint32
	from uint32
}

// explore goes through all states, until all are known, an invariant does not
// hold, or ctx ends.
func (s *scope) explore(ctx context.Context, arrive func(digest, []uint32)) *explorer {
	defer debug.SetGCPercent(debug.SetGCPercent(800))
	x := &explorer{scope: s, arrive: arrive, states: map[digest]uint32{}, forks: []fork{{}}}
	x.more.L = &x.mu
	stop := context.AfterFunc(ctx, func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.done = true
		x.more.Broadcast()
	})
	defer stop()
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(x.work)
	}
	wg.Wait()
	return x
}

func (x *explorer) work() {
	pool, c := newThreads(), newCanon()
	defer pool.Close()
	for {
		f, ok := x.fork()
		if !ok {
			return
		}
		x.follow(pool, c, f)
		x.mu.Lock()
		x.busy--
		x.mu.Unlock()
		x.more.Broadcast()
	}
}

// fork takes the last fork, or waits for one. There is none when nobody is busy
// any more.
func (x *explorer) fork() (f fork, ok bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for len(x.forks) == 0 && x.busy > 0 && !x.done {
		x.more.Wait()
	}
	if x.done || len(x.forks) == 0 {
		return f, false
	}
	last := len(x.forks) - 1
	f = x.forks[last]
	x.forks = x.forks[:last]
	x.busy++
	return f, true
}

// follow goes a way, and on from there until it comes to where somebody has
// been. The other ways it leaves to whoever has time.
func (x *explorer) follow(pool *threads, c *canon, f fork) {
	m := x.scope.begin(pool)
	defer m.end()
	m.goes(f.way)
	for way, from := f.way, f.from; ; {
		m.tidy()
		if len(m.violations) > 0 {
			x.fails(way)
			return
		}
		at, fresh := x.visit(c.digest(m), way, from)
		if !fresh {
			return
		}
		options := m.next()
		if len(options) == 0 {
			x.ended(m, way, at)
			return
		}
		x.leave(way, at, len(options))
		way, from = append(way, 0), at
		m.take(options[0])
	}
}

// visit enters a state into the books.
func (x *explorer) visit(d digest, way []uint32, from uint32) (at uint32, fresh bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.done {
		return 0, false
	}
	at, known := x.states[d]
	if !known {
		at = uint32(len(x.states))
		x.states[d] = at
	}
	if len(way) > 0 {
		x.edges = append(x.edges, [2]uint32{from, at})
	}
	x.depth = max(x.depth, len(way))
	if x.arrive != nil {
		x.arrive(d, way)
	}
	return at, !known
}

// leave has the other options of a state taken later.
func (x *explorer) leave(way []uint32, at uint32, options int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for i := options - 1; i > 0; i-- {
		x.forks = append(x.forks, fork{append(slices.Clone(way), uint32(i)), at})
	}
	x.more.Broadcast()
}

// ended checks a world at rest.
func (x *explorer) ended(m *small, way []uint32, at uint32) {
	if m.changed < len(x.scope.changes) {
		m.violate(I14, "the user made %d changes, of %d", m.changed, len(x.scope.changes))
	}
	m.rests()
	if len(m.violations) > 0 {
		x.fails(way)
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.ends = append(x.ends, at)
}

// fails takes note of the way to a violation.
func (x *explorer) fails(way []uint32) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.failed == nil {
		x.failed = append([]uint32{}, way...)
	}
	x.done = true
	x.more.Broadcast()
}

// restless counts the states from which no way leads to rest.
func (x *explorer) restless() int {
	before := make([][]uint32, len(x.states))
	for _, e := range x.edges {
		before[e[1]] = append(before[e[1]], e[0])
	}
	calm, left := make([]bool, len(x.states)), len(x.states)
	for todo := slices.Clone(x.ends); len(todo) > 0; {
		s := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if !calm[s] {
			calm[s] = true
			left--
			todo = append(todo, before[s]...)
		}
	}
	return left
}

// goes takes a way.
func (m *small) goes(way []uint32) {
	for _, choice := range way {
		m.take(m.next()[choice])
	}
}

// rests does what is done with a world at rest.
func (m *small) rests() {
	m.heal()
	m.check()
	m.close()
}

// live takes a way, with what is planned where it leads beyond what there is,
// and then what is planned, until the world is at rest or an invariant does not
// hold. It returns the way that was taken.
func (s *scope) live(pool *threads, way []uint32, story *[]string) (taken []uint32, violations []Violation) {
	m := s.begin(pool)
	defer m.end()
	m.Trace = story
	for len(m.violations) == 0 && m.Steps < maxSteps {
		options := m.next()
		if len(options) == 0 {
			m.rests()
			break
		}
		choice := uint32(0)
		if len(taken) < len(way) {
			choice = way[len(taken)] % uint32(len(options))
		}
		taken = append(taken, choice)
		m.take(options[choice])
	}
	return taken, m.violations
}

// explain shortens the way to a violation, and tells what happens on it.
func (s *scope) explain(way []uint32) (short []uint32, violations []Violation, story []string) {
	pool := newThreads()
	defer pool.Close()
	_, violations = s.live(pool, way, nil)
	if len(violations) == 0 {
		return way, nil, nil
	}
	what := history{violations: violations[:1]}
	short = simkit.Shrink(way, func(try []uint32) ([]uint32, bool) {
		taken, violations := s.live(pool, try, nil)
		return taken, slices.ContainsFunc(violations, func(v Violation) bool { return what.violates(v.Invariant) })
	})
	_, violations = s.live(pool, short, &story)
	return short, violations, story
}
