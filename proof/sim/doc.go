// Package sim plays Pawl's protocol in simulated worlds, to find out whether it
// keeps its promise whatever goes wrong.
//
// One seed is one world: a few objects that a user changes, notifications that
// are lost, doubled, late and out of order, several workers that crash, freeze
// and come back, stores whose answers get lost. The workers are the shipped
// engine, ledger and attempt; only what lies below them (the network, the
// clock, the processes) is simulated. Everything runs in one thread. Every
// choice comes from one recorded tape, so that a failure repeats, and shrinks
// by cutting and zeroing parts of its tape: zero always means that nothing goes
// wrong.
//
// When a world's troubles are over it heals: late messages arrive, an operator
// redrives what died, an audit finds what was lost. Then the invariants in
// invariant.go must hold, and most of them are watched all the way.
//
// Whether the simulator would notice a fault at all is shown in
// proof/mutants, by protocols that are wrong on purpose.
package sim
