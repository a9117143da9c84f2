package replaysource

import (
	"fmt"

	"github.com/pawlhq/pawl/event"
)

// place is where a payload, or a fault in it, lies.
type position struct {
	Path   string // fit for print; "standard input" for "-"
	Line   int64  // from 1
	Offset int64  // in bytes, from 0
	Number int64  // of the payload in its input, from 1
}

func (p position) String() string {
	return fmt.Sprintf("%s:%d: payload %d (byte %d)", p.Path, p.Line, p.Number, p.Offset)
}

// InputError says what could not be read. Everything before it was delivered.
type InputError struct {
	position
	// Skippable: Config.SkipBad would have passed over it.
	Skippable bool
	// Err is event's, jsontext's or the file's.
	Err error
}

func (e *InputError) Error() string {
	hint := "fix it"
	if e.Skippable {
		hint = "fix or skip it"
	}
	return fmt.Sprintf("replay: %s: %v; everything before it was delivered: %s and replay again, "+
		"events that the ledger knows already have no effect", e.position, e.Err, hint)
}

// Unwrap returns Err.
func (e *InputError) Unwrap() error { return e.Err }

// DeliveryError says which payload was not acknowledged, however often it was
// delivered.
type DeliveryError struct {
	position
	Tries int
	Err   error // of the last try; may be nil
}

func (e *DeliveryError) Error() string {
	s := fmt.Sprintf("replay: %s: not acknowledged after %d attempts", e.position, e.Tries)
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s + "; when the cause is gone replay again, events that the ledger knows already have no effect"
}

// Unwrap returns Err.
func (e *DeliveryError) Unwrap() error { return e.Err }

// display is how a path is printed.
func displayPath(path string) string {
	if path == "-" {
		return "standard input"
	}
	return event.Quote(path)
}
