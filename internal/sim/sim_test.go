package sim

import (
	"flag"
	"testing"
	"time"
)

var seedFlag = flag.Uint64("seed", 1, "")
var nFlag = flag.Int("histories", 2000, "")

func TestTry(t *testing.T) {
	pool := &threads{}
	start := time.Now()
	total, worst := 0, 0
	bad := map[Invariant]int{}
	var hits [steps][faults]int
	for i := range uint64(*nFlag) {
		var story []string
		sp := &story
		if *nFlag > 1 {
			sp = nil
		}
		h := playSeed(pool, *seedFlag+i, sp)
		for _, l := range story {
			t.Log(l)
		}
		total += h.steps
		worst = max(worst, h.steps)
		for s := range hits {
			for f := range hits[s] {
				hits[s][f] += h.hit[s][f]
			}
		}
		for _, v := range h.violations {
			bad[v.Invariant]++
			if bad[v.Invariant] <= 3 {
				t.Errorf("seed %d: %s %s", *seedFlag+i, v.Invariant, v.What)
			}
		}
	}
	d := time.Since(start)
	t.Logf("%d histories, %.0f/s, %d steps each, worst %d; %v", *nFlag, float64(*nFlag)/d.Seconds(), total / *nFlag, worst, bad)
	for s := range hits {
		t.Logf("%v %v", Step(s), hits[s])
	}
}
