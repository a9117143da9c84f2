// Package event reads the change notifications of object stores.
//
// Every store says "this object changed" in a dialect of its own: other field
// names, other key encodings, other ideas of order. [Parse] turns all of them
// into one [Event], and says through [Dialect.TrustsSequencer] how far the
// order that a dialect claims may be believed.
//
// Only the creation, the removal and the expiry of objects are events. Whatever
// else a store reports is counted and dropped, by a list of what is allowed.
//
// The package does no I/O, reads no clock and never panics on input. It visits
// no URL that a payload names and checks no signature: whether a notification
// is genuine is for its source to find out.
package event
