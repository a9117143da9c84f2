package simkit

// Fault is a fault of a request.
type Fault uint8

// A crash or a freeze affects the whole process.
const (
	NoFault           Fault = iota
	CrashBefore             // before the request is sent
	CrashAfter              // after the request took effect
	FreezeBefore            // the request is sent when the process continues
	FreezeAfter             // the request takes effect meanwhile
	Lost                    // takes effect without a response
	Unsent                  // no effect, no response
	Late                    // no response, a later effect
	Twice                   // takes effect twice; the second response arrives
	Torn                    // a part of a batch takes effect, without a response
	Refused                 // clearly rejected, for a transient reason
	Repeated                // takes effect twice, the second time late; the first response arrives
	Conflict                // reported although there was none
	LandsAndConflicts       // takes effect, but a conflict is reported
	SlowAnswer
	SlowRequest // the request and its response arrive late
	Faults
)

var faultNames = [...]string{
	"none", "crash before", "crash after", "freeze before", "freeze after", "lost answer", "unsent", "late", "sent twice", "torn", "refused",
	"repeated", "conflict", "lands and conflicts", "slow answer", "slow request",
}

// String returns the fault's name.
func (f Fault) String() string { return faultNames[f] }

// Fault draws one of the faults with a probability of perMille, or else NoFault.
func (t *Tape) Fault(perMille int, of ...Fault) Fault {
	if !t.Chance(perMille) {
		return NoFault
	}
	return Pick(t, of...)
}
