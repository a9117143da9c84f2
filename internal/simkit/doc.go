// Package simkit is the kernel of simulations. A simulation runs many worlds; each is one random history of
// processes and stores. The runner shrinks the history of a world that fails.
//
// Every choice in a world comes from its [Tape]. The same tape yields the same world.
package simkit
