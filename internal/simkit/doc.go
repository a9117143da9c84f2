// Package simkit is the kernel of simulations. A simulation runs many worlds; each world is one
// random history of processes and stores. The package has a clock with a queue of events,
// threads that run one at a time, faults, a trace, and a runner. The runner shrinks the history
// of a world that fails.
//
// Every choice in a world comes from its [Tape]. The same seed or the same tape yields the same
// world.
package simkit
