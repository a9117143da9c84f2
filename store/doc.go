// Package store defines the record store for everything that Pawl keeps: the rows of a
// ledger, registers, and the index of files. A driver only implements batch
// compare-and-swap of records. The layers above it implement the protocols.
//
// A record has a key of two parts, a random nonce that every write replaces, an optional
// due time, and a text body. Drivers do not read bodies.
//
// A driver is complete when it passes package store/storetest. docs/DRIVERS.md shows how
// to write one.
package store
