// Package ledger keeps one row for each object and pipeline.
//
// Want is the newest known version of the object, and Have is the version whose effect is
// committed. Events and audits raise Want, and workers move Have up to it. An object is settled
// when they are equal.
//
// The transitions of a row are pure. A [Store] commits the next row by compare-and-swap, and
// [Ledger] resolves its unclear answers. [Rows] keeps rows and registers in a record store.
package ledger
