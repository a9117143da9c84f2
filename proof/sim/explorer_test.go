package sim

import (
	"context"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"

	"github.com/pawlhq/pawl/internal/simkit"
)

// explorer tries every option of every state. States cannot be copied, so it reaches a state by
// replaying the path to it.
type explorer struct {
	scope  *scope
	arrive func(d digest, path []uint32) // called for each arrival at a state

	mu     sync.Mutex
	more   sync.Cond
	forks  []fork
	busy   int // workers that may still find forks
	done   bool
	states map[digest]uint32
	edges  [][2]uint32
	ends   []uint32 // at rest
	depth  int
	failed []uint32 // path to a violation, or nil
}

// fork is a path whose last step has not been taken, and the state before that step.
type fork struct {
	path []uint32
	from uint32
}

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
	pool, c := newThreads(), newStateKey()
	defer pool.Close()
	for {
		f, ok := x.nextFork()
		if !ok {
			return
		}
		x.explorePath(pool, c, f)
		x.mu.Lock()
		x.busy--
		x.mu.Unlock()
		x.more.Broadcast()
	}
}

// nextFork returns false when no worker can find more forks.
func (x *explorer) nextFork() (f fork, ok bool) {
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

// explorePath follows a path to a known state, and leaves the other options to other workers.
func (x *explorer) explorePath(pool *threadPool, c *stateKey, f fork) {
	m := x.scope.newWorld(pool)
	defer m.endThreads()
	m.followPath(f.path)
	for path, from := f.path, f.from; ; {
		m.tidy()
		if len(m.violations) > 0 {
			x.setFailed(path)
			return
		}
		at, fresh := x.visit(c.digest(m), path, from)
		if !fresh {
			return
		}
		options := m.nextOptions()
		if len(options) == 0 {
			x.checkEnd(m, path, at)
			return
		}
		x.addForks(path, at, len(options))
		path, from = append(path, 0), at
		m.execute(options[0])
	}
}

// visit reports whether the state is new.
func (x *explorer) visit(d digest, path []uint32, from uint32) (at uint32, fresh bool) {
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
	if len(path) > 0 {
		x.edges = append(x.edges, [2]uint32{from, at})
	}
	x.depth = max(x.depth, len(path))
	if x.arrive != nil {
		x.arrive(d, path)
	}
	return at, !known
}

// The caller follows the first option itself.
func (x *explorer) addForks(path []uint32, at uint32, options int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for i := options - 1; i > 0; i-- {
		x.forks = append(x.forks, fork{append(slices.Clone(path), uint32(i)), at})
	}
	x.more.Broadcast()
}

func (x *explorer) checkEnd(m *smallWorld, path []uint32, at uint32) {
	if m.changed < len(x.scope.changes) {
		m.violatef(I14, "the user made %d of %d changes", m.changed, len(x.scope.changes))
	}
	m.checkAtRest()
	if len(m.violations) > 0 {
		x.setFailed(path)
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.ends = append(x.ends, at)
}

func (x *explorer) setFailed(path []uint32) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.failed == nil {
		x.failed = append([]uint32{}, path...)
	}
	x.done = true
	x.more.Broadcast()
}

// cannotSettle counts the states from which no path leads to rest.
func (x *explorer) cannotSettle() int {
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

func (m *smallWorld) followPath(path []uint32) {
	for _, choice := range path {
		m.execute(m.nextOptions()[choice])
	}
}

func (m *smallWorld) checkAtRest() {
	m.repair()
	m.check()
	m.shutDown()
}

// runPath follows a path as far as its options exist, and then the scheduled events. It returns the
// path taken.
func (s *scope) runPath(pool *threadPool, path []uint32, trace *[]string) (taken []uint32, violations []Violation) {
	m := s.newWorld(pool)
	defer m.endThreads()
	m.Trace = trace
	for len(m.violations) == 0 && m.Steps < maxSteps {
		options := m.nextOptions()
		if len(options) == 0 {
			m.checkAtRest()
			break
		}
		choice := uint32(0)
		if len(taken) < len(path) {
			choice = path[len(taken)] % uint32(len(options))
		}
		taken = append(taken, choice)
		m.execute(options[choice])
	}
	return taken, m.violations
}

func (s *scope) shorten(path []uint32) (short []uint32, violations []Violation, trace []string) {
	pool := newThreads()
	defer pool.Close()
	_, violations = s.runPath(pool, path, nil)
	if len(violations) == 0 {
		return path, nil, nil
	}
	what := result{violations: violations[:1]}
	short = simkit.Shrink(path, func(try []uint32) ([]uint32, bool) {
		taken, violations := s.runPath(pool, try, nil)
		return taken, slices.ContainsFunc(violations, func(v Violation) bool { return what.violates(v.Invariant) })
	})
	_, violations = s.runPath(pool, short, &trace)
	return short, violations, trace
}
