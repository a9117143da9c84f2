// Package engine decides what a worker does next. It never blocks.
//
// [Engine.Step] maps inputs to actions. The engine has no clock, random source, goroutine or I/O of
// its own, so a simulator can run the shipped code.
//
// Each active object has an entry, which collects intents, such as an event to observe or a claim
// to make. The engine applies the intents to the last known row, and sends one compare-and-swap. If
// the row refuses the swap, the engine applies them to the current row.
//
// Nothing takes effect before the ledger has answered.
package engine
