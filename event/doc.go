// Package event parses the change notifications of object stores.
//
// # Parse a notification
//
// Stores use different dialects, with different field names, key encodings and orders. [Parse] converts
// them to [Event]s: creations, removals and expirations of objects. It counts and ignores all other
// records.
//
//	batch, err := event.Parse(payload, event.Detect)
//	…
//	for _, e := range batch.Events {
//		fmt.Println(batch.Dialect, e.Kind, e.Object) // aws created "s3://photos/in/red flower.jpg"
//	}
//
// The package does no I/O, reads no clock, and never panics on input. It checks no signature: the source
// must authenticate notifications.
//
// # Compare two events
//
// Notifications arrive in any order. A [Sequencer] orders the events of one key, if the dialect has
// sequencers:
//
//	older := e.Sequencer.CompareSameKey(last.Sequencer) < 0
//
// Sequencers of different keys cannot be compared. [Dialect.TrustsSequencer] reports whether two changes of
// one key always have different sequencers.
//
// # Print a key
//
// A key may contain any bytes. [Object.String] and [Quote] escape control characters for logs and errors.
package event
