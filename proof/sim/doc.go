// Package sim runs Pawl's protocol in simulated worlds and checks its invariants under random
// faults.
//
// One seed is one world: a few objects that a user changes; notifications that are lost, repeated,
// late and out of order; workers that crash, freeze and continue; stores whose answers get lost.
// The engine, the ledger and the attempt are the shipped code. The network, the clocks and the
// processes are simulated in one thread. Every choice comes from a recorded tape, so a failing
// world can be repeated, and shrunk by cutting and zeroing parts of its tape. Zero always means "no
// fault".
//
// When its faults stop, a world is repaired: late messages arrive, an operator redrives dead rows,
// an audit finds lost notifications. Most invariants in invariant.go are checked at every step, the
// others at the end.
//
// Package proof/mutants shows that the simulator detects known-wrong protocols.
package sim
