// Package sim runs Pawl's protocol in simulated worlds and checks its invariants under random
// faults.
//
// Each seed determines one simulated world. In a world, a user changes a few objects.
// Notifications are lost, repeated, late and out of order. Workers crash, freeze and continue.
// Responses of stores are lost. The engine, the ledger and the attempt are the code that users
// run. The network, the clocks and the processes are simulated in one thread. Every random
// choice comes from a recorded tape. The tape makes it possible to repeat a failing world, and
// to shrink it by cutting or zeroing parts of the tape. Zero always means "no fault".
//
// When the faults stop, the simulator repairs the world: late messages arrive, an operator
// redrives dead rows, and an audit finds lost notifications. The simulator checks most
// invariants in invariant.go at every step, and the others at the end.
//
// Package proof/mutants shows that the simulator detects known-wrong protocols.
package sim
