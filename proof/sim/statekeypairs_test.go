package sim

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pawlhq/pawl/internal/simkit"
)

// Paths to the same state must continue to the same states, or the explorer would miss states. A
// sample of pairs checks this.
const (
	pairsPerScope = 50
	followedSteps = 12
)

type pairs struct {
	chance *rand.Rand
	first  map[digest][]uint32
	met    int
	picked [][2][]uint32
}

func newPairs(seed uint64) *pairs {
	return &pairs{chance: rand.New(rand.NewPCG(seed, 0)), first: map[digest][]uint32{}}
}

func (p *pairs) arrive(d digest, path []uint32) {
	before, known := p.first[d]
	if !known {
		p.first[d] = slices.Clone(path)
		return
	}
	p.met++
	at := p.chance.IntN(p.met)
	if len(p.picked) < pairsPerScope {
		at = len(p.picked)
		p.picked = append(p.picked, [2][]uint32{})
	}
	if at < pairsPerScope {
		p.picked[at] = [2][]uint32{before, slices.Clone(path)}
	}
}

func (p *pairs) check(t *testing.T, s *scope) {
	t.Helper()
	pool, c := newThreads(), newStateKey()
	defer pool.Close()
	for _, pair := range p.picked {
		s.compare(t, pool, c, p.chance, pair)
	}
}

func (s *scope) compare(t *testing.T, pool *threadPool, c *stateKey, chance *rand.Rand, pair [2][]uint32) {
	t.Helper()
	a, b := pair[0], pair[1]
	for range followedSteps {
		nextA, soundA := s.successors(pool, c, a)
		nextB, soundB := s.successors(pool, c, b)
		same := slices.EqualFunc(nextA, nextB, func(x, y nextState) bool { return x.d == y.d })
		if !same || soundA != soundB {
			t.Fatalf("two paths lead to the same state key, but continue differently:\n-run '%s$' -path %s\n-run '%s$' -path %s",
				t.Name(), simkit.EncodeTape(a), t.Name(), simkit.EncodeTape(b))
		}
		if len(nextA) == 0 {
			return
		}
		n := chance.IntN(len(nextA))
		a, b = nextA[n].path, nextB[n].path
	}
}

type nextState struct {
	d    digest
	path []uint32
}

// The order of successors depends on the states only. sound reports whether the invariants hold.
func (s *scope) successors(pool *threadPool, c *stateKey, path []uint32) (all []nextState, sound bool) {
	sound = true
	for i, n := 0, 1; i < n; i++ {
		m := s.newWorld(pool)
		m.followPath(path)
		options := m.nextOptions()
		if n = len(options); n > 0 {
			m.execute(options[i])
			m.tidy()
			all = append(all, nextState{c.digest(m), append(slices.Clone(path), uint32(i))})
		} else {
			m.checkAtRest()
		}
		sound = sound && len(m.violations) == 0
		m.endThreads()
	}
	slices.SortFunc(all, func(a, b nextState) int { return cmp.Or(cmp.Compare(a.d[0], b.d[0]), cmp.Compare(a.d[1], b.d[1])) })
	return all, sound
}
