package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

type candidate struct {
	name string
	rank rank
	why  string
}

type rank int

const (
	changedTarget   rank = iota // in the code that the mutant breaks
	changedDetector             // in the code that detects the mutant
	unrelated
)

func ranked(all []candidate) []candidate {
	return slices.SortedFunc(slices.Values(all), func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), strings.Compare(a.name, b.name))
	})
}

func choose(all []candidate, most int) (chosen, left []candidate) {
	order := ranked(all)
	n := slices.IndexFunc(order, func(c candidate) bool { return c.rank == unrelated })
	if n < 0 {
		n = len(order)
	}
	n = min(n, most)
	return order[:n:n], order[n:]
}

func printChosen(w io.Writer, what string, chosen, left []candidate) {
	fmt.Fprintf(w, "%d of %d %s:\n", len(chosen), len(chosen)+len(left), what)
	reasons := map[string][]string{}
	for _, c := range chosen {
		reasons[c.why] = append(reasons[c.why], c.name)
	}
	for _, why := range slices.Sorted(maps.Keys(reasons)) {
		fmt.Fprintf(w, "  %s: %s\n", why, strings.Join(reasons[why], ", "))
	}
	if len(left) > 0 {
		fmt.Fprintf(w, "  skipped until make nightly: %s\n", strings.Join(names(left), ", "))
	}
}

func names(all []candidate) []string {
	list := []string{}
	for _, c := range all {
		list = append(list, c.name)
	}
	return list
}
