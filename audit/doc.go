// Package audit finds lost notifications by comparing a bucket with the ledger.
//
// [Decide] is a pure function: it compares a row with the result of a HEAD request and
// raises Want if a notification was lost. The order of requests makes an audit safe. It
// loads the row, then sends the HEAD request, then swaps the row if the row is
// unchanged. After a conflict it repeats all three. An audit only raises Want: workers
// read the object themselves and complete the row.
//
// An audit ignores objects that changed within the settle window, because their
// notification may still arrive, and rows that a worker is processing. It changes
// nothing if nothing was lost.
package audit
