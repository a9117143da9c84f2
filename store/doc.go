// Package store defines the record store for everything that Pawl keeps: batch compare-and-swap of
// records.
//
// A driver is complete when it passes package store/storetest: see docs/DRIVERS.md.
package store
