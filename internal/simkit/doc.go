// Package simkit is the kernel of simulated worlds: a clock with a queue of events, threads that
// run one at a time, faults, a trace, and a runner that runs many worlds and shrinks one that
// fails.
//
// Every choice in a world comes from its [Tape]. The same seed, or the same tape, gives the same
// world.
package simkit
