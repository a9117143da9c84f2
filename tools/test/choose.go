package main

import (
	"crypto/sha256"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// candidate is a fuzz target or a mutant that a run may leave to another one.
type candidate struct {
	name string
	rank rank
	why  string // it is chosen
}

// rank says how much a change has to do with a candidate.
type rank int

const (
	touched rank = iota // the change is in what the candidate fuzzes or breaks
	watched             // it is in what notices
	waiting             // it is elsewhere
)

// share bounds how many candidates a run takes.
type share struct{ least, most int }

// choose takes the candidates that a change touched, then those whose watchers it
// touched, and fills up with others to the least number. Inside a rank the commit decides the
// order, so that each one's turn comes. Both results are sorted by name.
func (s share) choose(all []candidate, commit string) (chosen, left []candidate) {
	order := slices.Clone(all)
	place := func(c candidate) string {
		sum := sha256.Sum256([]byte(commit + " " + c.name))
		return fmt.Sprintf("%d %x", c.rank, sum)
	}
	slices.SortFunc(order, func(a, b candidate) int { return strings.Compare(place(a), place(b)) })
	changed := 0
	for i, c := range order {
		if c.rank < waiting {
			changed++
		} else {
			order[i].why = "its turn"
		}
	}
	n := min(max(s.least, min(changed, s.most)), len(order))
	chosen, left = order[:n:n], order[n:]
	for _, part := range [][]candidate{chosen, left} {
		slices.SortFunc(part, func(a, b candidate) int { return strings.Compare(a.name, b.name) })
	}
	return chosen, left
}

// tell prints what is chosen, by the reason, and what is left.
func tell(w io.Writer, what string, chosen, left []candidate) {
	fmt.Fprintf(w, "%d of %d %s:\n", len(chosen), len(chosen)+len(left), what)
	reasons := map[string][]string{}
	for _, c := range chosen {
		reasons[c.why] = append(reasons[c.why], c.name)
	}
	for _, why := range slices.Sorted(maps.Keys(reasons)) {
		fmt.Fprintf(w, "  %s: %s\n", why, strings.Join(reasons[why], ", "))
	}
	if len(left) > 0 {
		fmt.Fprintf(w, "  left to make nightly: %s\n", strings.Join(names(left), ", "))
	}
}

func names(all []candidate) []string {
	var list []string
	for _, c := range all {
		list = append(list, c.name)
	}
	return list
}
