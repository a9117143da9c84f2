package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agext/levenshtein"
)

// maxName is how long a name is worth a suggestion.
const maxName = 64

// suggest returns what an error says about a name that is not among the known
// ones: the nearest of them, or all where none is near.
func suggest(name string, known []string) string {
	best, distance := "", len(name)/2+1
	for _, k := range known {
		if len(name) > maxName {
			break
		}
		d := levenshtein.Distance(strings.ToLower(name), k, nil)
		if d < distance {
			best, distance = k, d
		}
	}
	if best != "" {
		return fmt.Sprintf("did you mean %q?", best)
	}
	return "known here: " + strings.Join(slices.Sorted(slices.Values(known)), ", ")
}
