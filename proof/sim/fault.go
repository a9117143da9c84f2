package sim

import (
	"time"

	"github.com/pawlhq/pawl/internal/simkit"
)

// Step is a place in the protocol where a fault can occur.
type Step uint8

// The steps of the protocol.
const (
	StepSwap   Step = iota // compare-and-swap in the ledger
	StepChange             // one change of a swap, if each has its own response
	StepLoad               // after an ambiguous response, or to check the lease
	StepDue
	StepPin   // HEAD of the output
	StepLook  // HEAD of the input
	StepFetch // GET of the input
	StepAct
	StepPut
	StepDelete  // remove the output
	StepConfirm // HEAD of the output after an ambiguous response
	steps
)

var stepNames = [steps]string{"swap", "change", "load", "due", "pin", "look", "fetch", "act", "put", "delete", "confirm"}

// String returns the step's name.
func (s Step) String() string { return stepNames[s] }

// Fault is a fault at a step.
type Fault = simkit.Fault

const faults = simkit.Refused + 1

const (
	anywhere = 1<<simkit.CrashBefore | 1<<simkit.CrashAfter | 1<<simkit.FreezeBefore | 1<<simkit.FreezeAfter
	onReads  = 1<<simkit.CrashBefore | 1<<simkit.FreezeBefore | 1<<simkit.FreezeAfter | 1<<simkit.Refused // a crash before a read is like one after it
	onWrites = anywhere | 1<<simkit.Lost | 1<<simkit.Unsent | 1<<simkit.Late | 1<<simkit.Twice | 1<<simkit.Refused
)

// possibleFaults are bit masks.
var possibleFaults = [steps]uint16{
	StepSwap:   anywhere | 1<<simkit.Lost | 1<<simkit.Unsent | 1<<simkit.Late | 1<<simkit.Twice | 1<<simkit.Torn | 1<<simkit.Refused,
	StepChange: 1<<simkit.Lost | 1<<simkit.Unsent | 1<<simkit.Late | 1<<simkit.Twice | 1<<simkit.Refused,
	StepLoad:   onReads, StepDue: onReads, StepPin: onReads, StepLook: onReads, StepFetch: onReads, StepConfirm: onReads,
	StepAct: anywhere | 1<<simkit.Lost | 1<<simkit.Refused,
	StepPut: onWrites, StepDelete: onWrites,
}

// Has reports whether a fault can occur at the step.
func (s Step) Has(f Fault) bool { return possibleFaults[s]&(1<<f) != 0 }

func (w *World) fault(t *thread, s Step) Fault {
	if w.Now >= w.faultsEnd || w.plan.faulty == 0 {
		return simkit.NoFault
	}
	x := 9999 - w.Tape.Choose(10000)
	if s == w.plan.weakStep || s == StepChange && w.plan.weakStep == StepSwap {
		x /= w.plan.weakFactor
	}
	if x >= w.plan.faulty {
		return simkit.NoFault
	}
	for f := simkit.CrashBefore; f < faults; f++ {
		if rate := w.plan.rates[f]; x >= rate {
			x -= rate
			continue
		}
		if !s.Has(f) || !w.allowsFault(t, f) {
			return simkit.NoFault
		}
		w.injected[s][f]++
		if w.Trace != nil {
			w.logf(t.node, "%s: %s", s, f)
		}
		return f
	}
	return simkit.NoFault
}

// allowsFault limits crashes and freezes, because each adds many steps. Operators do not crash. A
// batch of one change does not land in part.
func (w *World) allowsFault(t *thread, f Fault) bool {
	switch f {
	case simkit.CrashBefore, simkit.CrashAfter:
		if t.node == nil || w.crashes >= maxCrashes || t.node.crashFreeUntil > w.Now {
			return false
		}
		w.crashes++
	case simkit.FreezeBefore, simkit.FreezeAfter:
		if t.node == nil || w.freezes >= maxFreezes {
			return false
		}
		w.freezes++
	case simkit.Torn:
		return t.batch > 1
	}
	return true
}

const (
	maxCrashes = 5
	maxFreezes = 4
)

// maxWriteDelay is shorter than the late-write window of 15 minutes, because clocks differ.
const maxWriteDelay = 12 * time.Minute
