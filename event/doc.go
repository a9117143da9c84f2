// Package event parses the change notifications of object stores.
//
// Stores use different dialects, with different field names, key encodings and orders. [Parse]
// converts them to [Event]s. [Dialect.TrustsSequencer] reports whether the order of a dialect is
// reliable.
//
// Events are creations, removals and expirations of objects, from a fixed list. Parse counts and
// ignores all other records.
//
// The package does no I/O, reads no clock, and never panics on input. It visits no URL in a
// payload and checks no signature: the source must authenticate notifications.
package event
