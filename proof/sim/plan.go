package sim

import (
	"time"

	"github.com/pawlhq/pawl/internal/simkit"
)

// plan holds the parameters of one world. Rates are per mille.
type plan struct {
	pipelines      []kindOf
	trusted        bool // the sequencers are trusted
	eventual       bool
	ignoresIfMatch bool
	ackSettled     bool // workers acknowledge settled deliveries only
	noSweep        bool // workers sweep only after the faults, so that messages trigger all attempts
	loses          int  // rate of lost notifications
	doubles        int  // rate of repeated notifications
	delays         int  // rate of notifications that are late by more than a few seconds, up to delay
	delay          time.Duration
	window         time.Duration // in which the user changes objects
	changes        int
	removes        int // rate of removals among the changes
	repeats        int // rate of changes that restore an earlier content
	poison         int // rate of changes to a content that no handler can process
	fails          int // rate of failing attempts
	slow           int // rate of slow attempts
	rereads        int // rate of external effects after which the handler reads its input again
	skewed         bool
	twoBucket      bool // the objects have the same key in different buckets
	audits         int  // during the faults
	purges         int
	redrives       int
	drains         int
	tasks          int
	batch          int
	cache          int
	attempts       int
	dynamo         bool          // the ledger behaves like a DynamoDB table
	lag            time.Duration // age of the due rows that the ledger returns; with dynamo, also of scanned rows

	rates      [faults]int // per 10,000
	faulty     int         // sum of rates
	weakStep   Step        // this step has weakFactor times as many faults
	weakFactor int
}

type kindOf uint8

const (
	// publishing pipelines send a HEAD and publish an output.
	publishing kindOf = iota
	// acting pipelines have an external effect.
	acting
	// trusting pipelines publish in event order.
	trusting
	// committing pipelines commit their effect in the ledger's transaction.
	committing
)

// Events are at most maxDelay late. Tombstones are purged, and changes audited, only after longer
// times.
const (
	maxDelay = 6 * time.Hour
	settle   = 7 * time.Hour
	retain   = 8 * time.Hour
	horizon  = 15 * time.Minute
	ttl      = 30 * time.Second
	skew     = 5 * time.Second
)

// The mildest alternative of each parameter comes first.
func drawPlan(t *simkit.Tape) plan {
	p := plan{
		trusted: t.Choose(2) == 0, eventual: t.Chance(100), ignoresIfMatch: t.Chance(250), ackSettled: t.Chance(150),
		loses: simkit.Pick(t, 0, 0, 0, 150), doubles: simkit.Pick(t, 0, 200, 500), delays: simkit.Pick(t, 0, 150, 400),
		delay: simkit.Pick(t, time.Minute, 20*time.Minute, maxDelay), window: simkit.Pick(t, 2*time.Minute, 20*time.Minute, 24*time.Hour),
		changes: 3 + t.Choose(6), removes: simkit.Pick(t, 100, 400, 800), repeats: simkit.Pick(t, 0, 0, 300), poison: simkit.Pick(t, 0, 0, 0, 250),
		fails: simkit.Pick(t, 0, 0, 100), slow: simkit.Pick(t, 0, 30, 120), rereads: simkit.Pick(t, 0, 0, 500), skewed: t.Chance(400), twoBucket: t.Chance(300),
		audits: simkit.Pick(t, 0, 0, 2), purges: simkit.Pick(t, 0, 2), redrives: simkit.Pick(t, 0, 0, 2), drains: simkit.Pick(t, 0, 0, 2),
		tasks: simkit.Pick(t, 4, 1), batch: simkit.Pick(t, 8, 1), cache: simkit.Pick(t, 8, 1), attempts: simkit.Pick(t, 4, 3, 1),
	}
	switch t.Choose(4) {
	case 2:
		p.dynamo, p.lag = true, 5*time.Second
	case 3:
		p.lag = 20 * time.Second
	}
	p.noSweep = p.ackSettled && p.audits+p.redrives == 0
	p.pipelines = p.drawPipelines(t)
	for f := simkit.CrashBefore; f < faults; f++ {
		p.rates[f] = simkit.Pick(t, 0, 0, 60, 250)
		p.faulty += p.rates[f]
	}
	if t.Chance(80) {
		p.poisonOnly(t)
	}
	if p.skewed { // skewed clocks cause additional attempts
		p.attempts = max(p.attempts, 2)
	}
	p.weakStep, p.weakFactor = simkit.Pick(t, weakSteps...), simkit.Pick(t, 1, 4, 12)
	p.weakFactor = min(p.weakFactor, max(1, 5000/max(p.faulty, 1))) // at least half of the requests must succeed
	return p
}

// poisonOnly removes all faults except poison, so that poison causes any death.
func (p *plan) poisonOnly(t *simkit.Tape) {
	p.rates, p.faulty, p.fails, p.slow, p.drains, p.skewed = [faults]int{}, 0, 0, 0, 0, false
	p.poison, p.repeats, p.removes, p.changes = 400, 0, 100, 3+t.Choose(2)
	p.window = simkit.Pick(t, 2*time.Minute, 5*time.Second)
	p.tasks, p.batch, p.attempts = 4, 8, simkit.Pick(t, 3, 4)
}

// Steps with effects are listed more than once.
var weakSteps = []Step{
	StepPut, StepPut, StepPut, StepAct, StepAct, StepSwap, StepSwap, StepDelete, StepPin, StepLook, StepFetch, StepConfirm, StepLoad, StepDue,
}

func (p *plan) drawPipelines(t *simkit.Tape) []kindOf {
	mixes := [][]kindOf{{publishing}, {publishing}, {acting}, {publishing, acting}}
	if p.trusted {
		mixes = append(mixes, []kindOf{trusting}, []kindOf{trusting})
	}
	mix := simkit.Pick(t, mixes...)
	if len(mix) == 1 && mix[0] == acting && p.cache == 1 && p.batch == 1 {
		return []kindOf{committing} // without a draw, so that all other worlds stay the same
	}
	return mix
}
