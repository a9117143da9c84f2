package sim

import "time"

// Step is a place in the protocol where something can go wrong.
type Step uint8

// The steps: calls to the ledger, calls to the object store, and the handler.
const (
	StepSwap    Step = iota // compare-and-swap in the ledger
	StepChange              // one change of a swap, where the ledger answers each alone
	StepLoad                // load after an unclear answer, or to see that the lease is still held
	StepDue                 // ask for due rows
	StepPin                 // look at the output
	StepLook                // look at the input
	StepFetch               // read the input
	StepAct                 // the handler
	StepPut                 // publish the output
	StepDelete              // remove the output
	StepConfirm             // look at the output after an unclear answer
	steps
)

var stepNames = [steps]string{"swap", "change", "load", "due", "pin", "look", "fetch", "act", "put", "delete", "confirm"}

// String returns the step's name.
func (s Step) String() string { return stepNames[s] }

// Fault is what goes wrong at a step.
type Fault uint8

// The faults. A crash or a freeze is the whole process's.
const (
	NoFault      Fault = iota
	CrashBefore        // the process dies; the request was not sent
	CrashAfter         // the request has its effect, then the process dies
	FreezeBefore       // the process stops, and sends the request when it goes on
	FreezeAfter        // the request has its effect while the process stands still
	Lost               // the request has its effect; its answer is lost
	Unsent             // the request has no effect, and no answer
	Late               // no answer; the request has its effect later
	Twice              // sent again by the SDK or a proxy, which report the second answer
	Torn               // some of a batch has its effect; no answer
	Refused            // a clear refusal for a passing reason
	faults
)

var faultNames = [faults]string{
	"none", "crash before", "crash after", "freeze before", "freeze after", "lost answer", "unsent", "late", "sent twice", "torn", "refused",
}

// String returns the fault's name.
func (f Fault) String() string { return faultNames[f] }

const (
	anywhere = 1<<CrashBefore | 1<<CrashAfter | 1<<FreezeBefore | 1<<FreezeAfter
	onReads  = 1<<CrashBefore | 1<<FreezeBefore | 1<<FreezeAfter | 1<<Refused // a read has no effect to crash after
	onWrites = anywhere | 1<<Lost | 1<<Unsent | 1<<Late | 1<<Twice | 1<<Refused
)

// possible says which faults can happen at which step.
var possible = [steps]uint16{
	StepSwap:   anywhere | 1<<Lost | 1<<Unsent | 1<<Late | 1<<Twice | 1<<Torn | 1<<Refused,
	StepChange: 1<<Lost | 1<<Unsent | 1<<Late | 1<<Twice | 1<<Refused,
	StepLoad:   onReads, StepDue: onReads, StepPin: onReads, StepLook: onReads, StepFetch: onReads, StepConfirm: onReads,
	StepAct: anywhere | 1<<Lost | 1<<Refused,
	StepPut: onWrites, StepDelete: onWrites,
}

// Has reports that a fault can happen at the step.
func (s Step) Has(f Fault) bool { return possible[s]&(1<<f) != 0 }

// fault draws what goes wrong at a step.
func (w *World) fault(t *thread, s Step) Fault {
	if w.now >= w.calm || w.plan.faulty == 0 {
		return NoFault
	}
	x := 9999 - w.tape.Choose(10000)
	if s == w.plan.weak || s == StepChange && w.plan.weak == StepSwap {
		x /= w.plan.times
	}
	if x >= w.plan.faulty {
		return NoFault
	}
	for f := CrashBefore; f < faults; f++ {
		if rate := w.plan.rates[f]; x >= rate {
			x -= rate
			continue
		}
		if !s.Has(f) || !w.affords(t, f) {
			return NoFault
		}
		w.hit[s][f]++
		if w.tells() {
			w.tell(t.node, "%s: %s", s, f)
		}
		return f
	}
	return NoFault
}

// affords bounds crashes and freezes, which cost many steps each. An operator
// has no process that could crash, and one change cannot be torn.
func (w *World) affords(t *thread, f Fault) bool {
	switch f {
	case CrashBefore, CrashAfter:
		if t.node == nil || w.crashes >= maxCrashes || t.node.immune > w.now {
			return false
		}
		w.crashes++
	case FreezeBefore, FreezeAfter:
		if t.node == nil || w.freezes >= maxFreezes {
			return false
		}
		w.freezes++
	case Torn:
		return t.batch > 1
	}
	return true
}

const (
	maxCrashes = 5
	maxFreezes = 4
)

// latest is how late a write may land. The horizon is a quarter of an hour, and
// clocks differ.
const latest = 12 * time.Minute
