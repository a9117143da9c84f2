// Package engine decides what a worker does next. It never blocks.
//
// [Engine.Step] maps inputs to actions. The engine has no clock, random source, goroutine or I/O of
// its own, so a simulator can run the shipped code.
//
// Each active object has an entry, which collects intents: events to observe, an attempt's result,
// a lease to renew, a claim to make. The engine applies the intents to the last known row with the
// transitions of package ledger, and sends one compare-and-swap per entry at a time. If the row
// refuses the swap, the engine applies the intents to the current row.
//
// Nothing takes effect before the ledger has answered. A task starts after its claim is committed,
// and a delivery is acknowledged after its events are.
package engine
