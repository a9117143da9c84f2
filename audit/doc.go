// Package audit finds lost notifications by comparing a bucket with the ledger.
//
// An audit loads the row, then sends the HEAD request, then swaps the row if it is unchanged.
// After a conflict it repeats all three steps. It only raises Want, with [Decide]; workers
// complete the row.
//
// An audit ignores objects that changed within the settle window, because their notification may
// still arrive. It also ignores rows that a worker is processing.
package audit
