// Package ledger keeps one row for each object that a pipeline has heard of.
//
// A row says what is wanted (the newest version heard of) and what is had (the
// version whose effect is committed). Events and audits raise Want, workers move
// Have up to it, and where the two are equal the object is settled. Duplicates,
// lost events, failures, removals: all of them are relations between the two.
//
// The transitions (Observe, Raise, Claim, Renew, Complete, Fail, Release, ScheduleVerify,
// Redrive, ResetOrder, Purgeable) are pure: they map a row, an input and a time to
// the next row, read no clock and no random source, and do no I/O. A [Store] commits
// the next row by compare-and-swap, and [Ledger] makes its unclear answers
// clear. [Rows] keeps rows and registers in a record store: see package store.
package ledger
