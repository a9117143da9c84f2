// Package engine decides what a worker does next. It never blocks.
//
// [Engine.Step] maps inputs (deliveries, swap outcomes, task results, due rows, ticks) to
// actions (swap these rows, start this task, answer that delivery). The engine has no
// clock, random source, goroutine or I/O of its own, so a simulator can run the shipped
// code.
//
// The engine keeps an entry for each active object. An entry collects intents: events to
// observe, an attempt's result, a lease to renew, a claim to make. When the object has no
// pending swap, the engine applies its intents to the last known row, with the pure
// transitions of package ledger, and sends one compare-and-swap. If another write refuses
// the swap, the engine applies the same intents to the current row.
//
// Nothing takes effect before the ledger has answered. A task starts after its claim is
// committed, and a delivery is acknowledged after its events are committed.
package engine
