// Package audit finds lost notifications by comparing a bucket with the ledger.
//
// [Decide] is a pure function: it compares a row with the result of a HEAD request and raises
// Want if a notification was lost. The order of the requests makes an audit safe: the audit
// loads the row, then sends the HEAD request, then swaps the row if it is unchanged. After a
// conflict the audit repeats all three steps. An audit only raises Want. Workers then read the
// object themselves and complete the row.
//
// An audit ignores objects that changed within the settle window, because their notification
// may still arrive. It also ignores rows that a worker is processing. If no notification was
// lost, it changes nothing.
package audit
