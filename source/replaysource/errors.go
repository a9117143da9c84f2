package replaysource

import (
	"fmt"

	"github.com/pawlhq/pawl/event"
)

type position struct {
	Path   string // printable; "standard input" for "-"
	Line   int64  // starts at 1
	Offset int64  // in bytes, starts at 0
	Number int64  // index of the payload in its input, starts at 1
}

func (p position) String() string {
	return fmt.Sprintf("%s:%d: payload %d (byte %d)", p.Path, p.Line, p.Number, p.Offset)
}

// InputError is returned if an input cannot be read. Everything before it was delivered.
type InputError struct {
	position
	// Skippable reports that Config.SkipBad would skip the payload.
	Skippable bool
	Err       error
}

func (e *InputError) Error() string {
	hint := "fix it"
	if e.Skippable {
		hint = "fix or skip it"
	}
	return fmt.Sprintf("replay: %s: %v; everything before it was delivered: %s and replay again "+
		"(events that are already in the ledger have no effect)", e.position, e.Err, hint)
}

// Unwrap returns Err.
func (e *InputError) Unwrap() error { return e.Err }

// DeliveryError is returned for a payload that was not acknowledged after all attempts.
type DeliveryError struct {
	position
	Tries int
	Err   error // of the last attempt; may be nil
}

func (e *DeliveryError) Error() string {
	s := fmt.Sprintf("replay: %s: not acknowledged after %d attempts", e.position, e.Tries)
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s + "; resolve the cause and replay again: events that are already in the ledger have no effect"
}

// Unwrap returns Err.
func (e *DeliveryError) Unwrap() error { return e.Err }

func displayPath(path string) string {
	if path == "-" {
		return "standard input"
	}
	return event.Quote(path)
}
