// Package store defines the record store under everything that Pawl keeps: the rows
// of a ledger, registers, and the index of files. A driver is a batch compare-and-swap
// of records; all protocol logic is above it, once.
//
// A record has a key of two parts, a fresh random nonce from each write, an optional
// time at which it is due, and a body of text. Drivers do not look into bodies.
//
// A driver is complete when it passes package store/storetest. docs/DRIVERS.md shows
// how to write one.
package store
