//go:build explore

package sim

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
)

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

// twins is how many pairs of ways that lead to one state are followed in each
// scope, and strides how far.
const (
	twins   = 100
	strides = 15
)

// TestTwins holds that the explorer may turn back where it has been: two ways
// that lead to what it takes for one state can go on to the same states, and so
// on, until both are at rest.
func TestTwins(t *testing.T) {
	first := firstSeed(t)
	for i := range scopes {
		s := &scopes[i]
		t.Run(s.name, func(t *testing.T) {
			chance := rand.New(rand.NewPCG(first, uint64(i)))
			pool, c := &threads{}, newCanon()
			defer pool.close()
			for _, pair := range s.pairs(t, chance) {
				s.compare(t, pool, c, chance, pair)
			}
		})
	}
}

// pairs picks pairs of ways to one state.
func (s *scope) pairs(t *testing.T, chance *rand.Rand) (pairs [][2][]uint32) {
	t.Helper()
	first, met := map[digest][]uint32{}, 0
	s.explore(t.Context(), func(d digest, way []uint32) {
		before, known := first[d]
		if !known {
			first[d] = slices.Clone(way)
			return
		}
		pair := [2][]uint32{before, slices.Clone(way)}
		if met++; len(pairs) < twins {
			pairs = append(pairs, pair)
		} else if at := chance.IntN(met); at < twins {
			pairs[at] = pair
		}
	})
	return pairs
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
				"TestExplore/"+s.name, encodeTape(a), "TestExplore/"+s.name, encodeTape(b))
		}
		if len(nextA) == 0 {
			return
		}
		n := chance.IntN(len(nextA))
		a, b = nextA[n].way, nextB[n].way
	}
}
