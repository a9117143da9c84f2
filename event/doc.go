// Package event parses the change notifications of object stores.
//
// Stores use different dialects, with different field names, key encodings and orders. [Parse] converts
// them to [Event]s: creations, removals and expirations of objects. It counts and ignores all other
// records.
//
// The package does no I/O, reads no clock, and never panics on input. It checks no signature: the source
// must authenticate notifications.
package event
