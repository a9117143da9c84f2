// Package engine decides what a worker does next, and never waits.
//
// [Engine.Step] maps inputs (deliveries, swap outcomes, task results, due rows,
// the passing of time) to actions (swap these rows, start this task, answer
// that delivery). It has no clock, no randomness of its own, no goroutine and
// no I/O, so a simulator can drive the very code that ships.
//
// Inside, it keeps an entry for every object that something is happening to.
// An entry collects intents: events to observe, an attempt's result, a lease to
// renew, a claim to make. When the object has no swap in flight, its intents
// are folded over the last known row by the pure transitions of package ledger
// into one compare-and-swap. A refused swap brings the row that stands, and the
// same intents are folded again over that one.
//
// Nothing takes effect before the ledger has answered: a task starts when its
// claim is committed, a delivery is acknowledged when its events are.
package engine
