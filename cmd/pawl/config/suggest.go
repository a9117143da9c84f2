package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agext/levenshtein"
)

// maxName is the maximum length of a name that gets a suggestion.
const maxName = 64

// suggest returns a hint for an unknown name: the most similar known name, or all known
// names.
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
