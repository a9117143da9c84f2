// Package ledger keeps one row for each object and pipeline.
//
// In a row, Want is the newest known version of the object, and Have is the version whose
// effect is committed. Events and audits raise Want, and workers move Have up to it. If
// the two are equal, the object is settled. Duplicates, lost events, failures and removals
// are all relations between the two.
//
// The transitions of a row (Observe, Raise, Claim, Renew, Complete, Fail, Release,
// ScheduleVerify, Redrive, ResetOrder) are pure: they map a row, an input and a time to
// the next row. A [Store] commits the next row by compare-and-swap, and [Ledger] resolves
// its unclear answers. [Rows] keeps rows and registers in a record store (package store).
package ledger
