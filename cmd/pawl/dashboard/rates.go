package dashboard

import (
	"slices"
	"sync"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/engine"
)

// Rates observes the completions of this process.
type Rates struct {
	mu        sync.Mutex
	pipelines map[string]*ring
}

const remembered = 512 // completions of each pipeline

// ring has the last completions of a pipeline.
type ring struct {
	n   int // completions so far
	all [remembered]completion
}

type completion struct {
	at     time.Time
	behind time.Duration // 0: unknown
}

// Observe implements [pawl.Observer].
func (r *Rates) Observe(n pawl.Notice) {
	if n.Kind != engine.Committed {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pipelines == nil {
		r.pipelines = map[string]*ring{}
	}
	p := r.pipelines[n.Key.Pipeline]
	if p == nil {
		p = &ring{}
		r.pipelines[n.Key.Pipeline] = p
	}
	p.all[p.n%remembered] = completion{time.Now(), n.Behind}
	p.n++
}

// rate summarizes the last completions of a pipeline.
type rate struct {
	PerMinute float64
	P50, P99  time.Duration // of the convergence; 0: unknown
}

func (r *Rates) of(pipeline string) (out rate) {
	var last []completion
	r.mu.Lock()
	if p := r.pipelines[pipeline]; p != nil {
		last = slices.Clone(p.all[:min(p.n, remembered)])
	}
	r.mu.Unlock()
	var behind []time.Duration
	now, oldest := time.Now(), time.Duration(0)
	for _, c := range last {
		age := now.Sub(c.at)
		oldest = max(oldest, age)
		if age < time.Minute {
			out.PerMinute++
		}
		if c.behind > 0 {
			behind = append(behind, c.behind)
		}
	}
	if len(last) == remembered && oldest < time.Minute { // older ones of this minute are forgotten
		out.PerMinute *= float64(time.Minute) / float64(max(oldest, time.Millisecond))
	}
	if len(behind) > 0 {
		slices.Sort(behind)
		out.P50, out.P99 = behind[len(behind)/2], behind[len(behind)*99/100]
	}
	return out
}
