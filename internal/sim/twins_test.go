//go:build explore

package sim

import (
	"cmp"
	"context"
	"slices"
	"testing"
)

// after returns the states that the options of a state lead to, in an order of
// their own.
func (s *scope) after(pool *threads, c *canon, way []uint32) (states []digest, ways [][]uint32) {
	type one struct {
		d   digest
		way []uint32
	}
	var all []one
	for i, n := 0, 1; i < n; i++ {
		m := s.begin(pool)
		m.goes(way)
		options := m.next()
		if n = len(options); n > 0 {
			m.take(options[i])
			m.tidy()
			all = append(all, one{c.digest(m), append(slices.Clone(way), uint32(i))})
		}
		m.end()
	}
	slices.SortFunc(all, func(a, b one) int { return cmp.Or(cmp.Compare(a.d[0], b.d[0]), cmp.Compare(a.d[1], b.d[1])) })
	for _, o := range all {
		states, ways = append(states, o.d), append(ways, o.way)
	}
	return states, ways
}

func TestTwins(t *testing.T) {
	for _, s := range scopes {
		if s.name != "n1c0s1" && s.name != "n2c0s0" && s.name != "n1c1s0" {
			continue
		}
		first := map[digest][]uint32{}
		var pairs [][2][]uint32
		ctx, cancel := context.WithTimeout(t.Context(), *limit)
		defer cancel()
		s.explore(ctx, func(d digest, way []uint32) {
			if f, ok := first[d]; ok {
				pairs = append(pairs, [2][]uint32{f, slices.Clone(way)})
			} else {
				first[d] = slices.Clone(way)
			}
		})
		pool, c := &threads{}, newCanon()
		bad := 0
		for _, p := range pairs {
			a, _ := s.after(pool, c, p[0])
			b, _ := s.after(pool, c, p[1])
			if !slices.Equal(a, b) {
				if bad++; bad < 4 {
					t.Errorf("%v\n%v\nlead to one state, and go on differently: %d and %d", p[0], p[1], len(a), len(b))
				}
			}
		}
		t.Logf("%d pairs, %d bad", len(pairs), bad)
		pool.close()
	}
}
