// Package sim runs Pawl's protocol in simulated worlds and checks its invariants under random
// faults.
//
// Each seed determines one world. A user changes a few objects, notifications and responses are
// lost, and workers crash and freeze. Only the network, the clocks and the processes are simulated,
// in one thread. Every random choice comes from a recorded tape, which can be repeated and shrunk.
// Zero always means "no fault".
//
// When the faults stop, the simulator repairs the world. It checks most invariants at every step.
// Package proof/mutants shows that it detects wrong protocols.
package sim
