package simkit

// Fault is a fault of a request.
type Fault uint8

// The faults. A crash or a freeze affects the whole process.
const (
	NoFault           Fault = iota
	CrashBefore             // the process crashes before it sends the request
	CrashAfter              // the request takes effect, then the process crashes
	FreezeBefore            // the process stops, and sends the request when it continues
	FreezeAfter             // the request takes effect while the process is stopped
	Lost                    // the request takes effect, but its response is lost
	Unsent                  // the request has no effect, and there is no response
	Late                    // there is no response, and the request takes effect later
	Twice                   // the request takes effect twice, and the second response arrives
	Torn                    // a part of a batch takes effect, and there is no response
	Refused                 // the server clearly rejects the request for a transient reason
	Repeated                // the request takes effect twice, the second time late, and the first response arrives
	Conflict                // the response reports a conflict although there was none
	LandsAndConflicts       // the request takes effect, but the response reports a conflict
	SlowAnswer              // the response arrives late
	SlowRequest             // the request arrives late, and so does its response
	Faults                  // number of faults
)

var faultNames = [...]string{
	"none", "crash before", "crash after", "freeze before", "freeze after", "lost answer", "unsent", "late", "sent twice", "torn", "refused",
	"repeated", "conflict", "lands and conflicts", "slow answer", "slow request",
}

// String returns the fault's name.
func (f Fault) String() string { return faultNames[f] }

// Fault draws one of the given faults with a probability of perMille. Otherwise it returns
// NoFault.
func (t *Tape) Fault(perMille int, of ...Fault) Fault {
	if !t.Chance(perMille) {
		return NoFault
	}
	return Pick(t, of...)
}
