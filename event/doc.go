// Package event reads the change notifications of object stores.
//
// Every store says "this object changed" in a dialect of its own: other field
// names, other key encodings, other ideas of order. [Parse] turns all of them
// into one [Event], and says through [Dialect.TrustsSequencer] how far the
// order that a dialect claims may be believed.
//
// The package does no I/O, reads no clock and never panics on input.
package event
