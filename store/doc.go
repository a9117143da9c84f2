// Package store defines the record store for everything that Pawl keeps: batch compare-and-swap of
// records.
//
// # Write a record
//
// A [Change] names the nonce that the record must have, and the next record with a fresh nonce. The zero
// [Nonce] requires that there is no record:
//
//	cursor := store.Key{Space: "cursors", Name: "march"}
//	first := store.Record{Key: cursor, Nonce: store.NewNonce(), Body: "41"}
//	out, err := records.Swap(ctx, []store.Change{{Key: cursor, Next: &first}})
//
// The [Outcome] is Applied, or Refused with the current record. After any other error than [ErrThrottled]
// and [ErrRejected], the change may have landed. The caller then loads the record and compares the nonce:
//
//	found, err := records.Load(ctx, []store.Key{cursor})
//
// [Store.Apply] makes several changes or none.
//
// # Read records
//
// [Store.Scan] yields the records of a space in the order of names. [Store.Due] returns the records whose
// time has come. [Join] makes a name whose order is that of its parts.
//
// # Drivers
//
// The packages below store keep records in memory, SQLite, PostgreSQL and DynamoDB. [Traits] declare the
// limits of a driver. A driver is complete when it passes package store/storetest: see docs/DRIVERS.md.
package store
