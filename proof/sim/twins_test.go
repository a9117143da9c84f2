package sim

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pawlhq/pawl/internal/simkit"
)

// The explorer turns back where it has been before. So two ways that lead to what
// it takes for one state must go on to the same states, and so on, until both are
// at rest: otherwise it would miss what only one of them leads to. Some pairs of
// ways are followed to see that they do.
const (
	twins   = 50 // pairs in each scope
	strides = 12 // how far they are followed
)

// pairs picks pairs of ways to one state.
type pairs struct {
	chance *rand.Rand
	first  map[digest][]uint32
	met    int
	picked [][2][]uint32
}

func newPairs(seed uint64) *pairs {
	return &pairs{chance: rand.New(rand.NewPCG(seed, 0)), first: map[digest][]uint32{}}
}

// arrive is told of every way to a state.
func (p *pairs) arrive(d digest, way []uint32) {
	before, known := p.first[d]
	if !known {
		p.first[d] = slices.Clone(way)
		return
	}
	p.met++
	at := p.chance.IntN(p.met)
	if len(p.picked) < twins {
		at = len(p.picked)
		p.picked = append(p.picked, [2][]uint32{})
	}
	if at < twins {
		p.picked[at] = [2][]uint32{before, slices.Clone(way)}
	}
}

// follow follows the pairs.
func (p *pairs) follow(t *testing.T, s *scope) {
	t.Helper()
	pool, c := newThreads(), newCanon()
	defer pool.Close()
	for _, pair := range p.picked {
		s.compare(t, pool, c, p.chance, pair)
	}
}

// compare follows a pair of ways as far as it goes.
func (s *scope) compare(t *testing.T, pool *threads, c *canon, chance *rand.Rand, pair [2][]uint32) {
	t.Helper()
	a, b := pair[0], pair[1]
	for range strides {
		nextA, soundA := s.after(pool, c, a)
		nextB, soundB := s.after(pool, c, b)
		same := slices.EqualFunc(nextA, nextB, func(x, y arrival) bool { return x.d == y.d })
		if !same || soundA != soundB {
			t.Fatalf("two ways lead to what is taken for one state, and go on differently:\n-run '%s$' -way %s\n-run '%s$' -way %s",
				t.Name(), simkit.EncodeTape(a), t.Name(), simkit.EncodeTape(b))
		}
		if len(nextA) == 0 {
			return
		}
		n := chance.IntN(len(nextA))
		a, b = nextA[n].way, nextB[n].way
	}
}

// arrival is a state that a way leads to.
type arrival struct {
	d   digest
	way []uint32
}

// after returns where the options of a state lead, in an order that goes by the
// states, and whether the invariants hold there.
func (s *scope) after(pool *threads, c *canon, way []uint32) (all []arrival, sound bool) {
	sound = true
	for i, n := 0, 1; i < n; i++ {
		m := s.begin(pool)
		m.goes(way)
		options := m.next()
		if n = len(options); n > 0 {
			m.take(options[i])
			m.tidy()
			all = append(all, arrival{c.digest(m), append(slices.Clone(way), uint32(i))})
		} else {
			m.rests()
		}
		sound = sound && len(m.violations) == 0
		m.end()
	}
	slices.SortFunc(all, func(a, b arrival) int { return cmp.Or(cmp.Compare(a.d[0], b.d[0]), cmp.Compare(a.d[1], b.d[1])) })
	return all, sound
}
