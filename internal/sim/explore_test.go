//go:build explore

package sim

import (
	"context"
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl/event"
)

var whole = flag.Bool("whole", false, "explore every scope, and not only the small ones")
var limit = flag.Duration("limit", time.Minute, "how long a scope is explored at most")

const (
	created = event.Created
	removed = event.Removed
)

var scopes = func() []scope {
	var all []scope
	for _, k := range []kindOf{publishing, acting, trusting} {
		for _, trusted := range []bool{true, false} {
			if k == trusting && !trusted {
				continue
			}
			for i, h := range [][]event.Kind{{created}, {created, created}, {created, removed}, {created, created, removed}, {created, removed, created}, {created, created, created}} {
				for crashes := range 3 {
					for stalls := range 3 {
						name := [...]string{"1", "2", "2r", "3", "3r", "3c"}[i]
						all = append(all, scope{
							name: fmt.Sprintf("%c%vn%sc%ds%d", kindNames[k][0], trusted, name, crashes, stalls)[:], kind: k, trusted: trusted,
							changes: h, crashes: crashes, stalls: stalls,
						})
					}
				}
			}
		}
	}
	return all
}()

// TestExplore explores the scopes.
func TestExplore(t *testing.T) {
	for _, s := range scopes {
		t.Run(s.name, func(t *testing.T) {
			start := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), *limit)
			defer cancel()
			x := s.explore(ctx, nil)
			t.Logf("%d states, %d transitions, %d at rest, depth %d, %d steps, %v", len(x.states), len(x.edges), len(x.ends), x.depth, x.steps.Load(), time.Since(start))
			if x.violations != nil {
				t.Errorf("%v", x.violations)
				pool := &threads{}
				defer pool.close()
				var story []string
				s.lives(pool, x.failed, &story)
				t.Log(strings.Join(story, "\n"))
				return
			}
			t.Logf("restless: %d", x.restless())
		})
	}
}
