// Package demo is `pawl demo`: an object store, a careless messenger and real
// worker processes on one machine, and the proof that the outputs are right all
// the same.
//
// One seed decides what is uploaded when, and what the messenger does to each
// notification. What the processes make of it differs from run to run, as the
// machine has it.
package demo
