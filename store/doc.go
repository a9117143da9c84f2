// Package store defines the record store for everything that Pawl keeps. A driver only implements
// batch compare-and-swap of records; the layers above it implement the protocols.
//
// A record has a key of two parts, a nonce, an optional due time, and a text body that drivers do
// not read. A driver is complete when it passes package store/storetest: see docs/DRIVERS.md.
package store
