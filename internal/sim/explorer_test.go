//go:build explore

package sim

import (
	"context"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
)

// explorer goes through all states of a scope: from each it takes every option
// there is, and turns back where it has been before. Nothing can be copied, so
// it comes to a state by playing the way that leads there anew.
type explorer struct {
	scope *scope
	steps atomic.Uint64 // with those that were played anew

	mu          sync.Mutex
	more        sync.Cond
	busy        int
	forks       []fork
	states      map[digest]uint32
	edges       [][2]uint32
	ends        []uint32 // states at rest
	depth       int
	failed      []uint32 // the way to a violation
	violations  []Violation
	transitions uint64
	done        bool
	rest        uint64                       // states of which it is not known if they can come to rest
	sample      func(d digest, way []uint32) // is told of every arrival
}

// fork is a way whose last step has yet to be taken, and the state before it.
type fork struct {
	way  []uint32
	from uint32
}

// explore goes through all states, until all are known, an invariant does not
// hold, or ctx ends.
func (s *scope) explore(ctx context.Context, sample func(digest, []uint32)) *explorer {
	x := &explorer{scope: s, states: map[digest]uint32{}, sample: sample}
	x.more.L = &x.mu
	x.forks = []fork{{}}
	stop := context.AfterFunc(ctx, func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.done = true
		x.more.Broadcast()
	})
	defer stop()
	defer debug.SetGCPercent(debug.SetGCPercent(800))
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(x.work)
	}
	wg.Wait()
	return x
}

func (x *explorer) work() {
	pool := &threads{}
	defer pool.close()
	c := newCanon()
	for {
		f, ok := x.fork()
		if !ok {
			return
		}
		x.follow(pool, c, f)
		x.mu.Lock()
		x.busy--
		x.more.Broadcast()
		x.mu.Unlock()
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
// been.
func (x *explorer) follow(pool *threads, c *canon, f fork) {
	m := x.scope.begin(pool)
	defer m.end()
	m.goes(f.way)
	way, from := f.way, f.from
	for {
		if x.fails(m, way) {
			return
		}
		at, fresh := x.visit(c, m, way, from)
		if !fresh {
			break
		}
		options := m.next()
		if len(options) == 0 {
			x.ended(m, way, at)
			break
		}
		x.push(way, at, len(options))
		way, from = append(way, 0), at
		m.take(options[0])
	}
	x.steps.Add(uint64(m.steps))
}

// goes takes a way. Where it leads beyond what there is, or ends, the first
// option is taken.
func (m *small) goes(way []uint32) {
	for _, choice := range way {
		if options := m.next(); len(options) > 0 {
			m.take(options[int(choice)%len(options)])
		}
	}
}

// visit enters a state into the books.
func (x *explorer) visit(c *canon, m *small, way []uint32, from uint32) (at uint32, fresh bool) {
	m.tidy()
	d := c.digest(m)
	x.mu.Lock()
	defer x.mu.Unlock()
	at, known := x.states[d]
	if !known {
		at = uint32(len(x.states))
		x.states[d] = at
	}
	if len(way) > 0 {
		x.edges = append(x.edges, [2]uint32{from, at})
	}
	x.depth = max(x.depth, len(way))
	if x.sample != nil {
		x.sample(d, way)
	}
	return at, !known && !x.done
}

func (x *explorer) push(way []uint32, at uint32, options int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for i := options - 1; i > 0; i-- {
		x.forks = append(x.forks, fork{append(slices.Clone(way), uint32(i)), at})
	}
	x.more.Broadcast()
}

// ended checks a world at rest, with all that is done then.
func (x *explorer) ended(m *small, way []uint32, at uint32) {
	m.heal()
	m.check()
	m.close()
	if x.fails(m, way) {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.ends = append(x.ends, at)
}

// fails takes note of a violation.
func (x *explorer) fails(m *small, way []uint32) bool {
	if len(m.violations) == 0 {
		return false
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.failed == nil {
		x.failed, x.violations, x.done = slices.Clone(way), m.violations, true
	}
	return true
}

// restless counts the states from which no way leads to rest.
func (x *explorer) restless() int {
	before := make([][]uint32, len(x.states))
	for _, e := range x.edges {
		before[e[1]] = append(before[e[1]], e[0])
	}
	calm := make([]bool, len(x.states))
	left := len(x.states)
	for todo := x.ends; len(todo) > 0; {
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

// lives plays a way to its end, as the explorer does, and on to rest by what is
// planned.
func (s *scope) lives(pool *threads, way []uint32, story *[]string) (violations []Violation) {
	m := s.begin(pool)
	defer m.end()
	m.story = story
	for i := 0; len(m.violations) == 0 && m.steps < maxSteps; i++ {
		options := m.next()
		if len(options) == 0 {
			m.heal()
			m.check()
			m.close()
			break
		}
		choice := 0
		if i < len(way) {
			choice = int(way[i]) % len(options)
		}
		m.take(options[choice])
	}
	return m.violations
}
