package simkit

import (
	"fmt"
	"time"
)

// World is the kernel of one simulated world.
type World struct {
	Tape       *Tape
	Now        time.Duration // since the start of the world
	Queue      Queue
	Steps      int // events so far
	Violations []Violation
	Trace      *[]string // one line per entry; nil for none
}

// Violation is a violated invariant.
type Violation struct {
	Invariant string
	What      string
	format    string
}

// String returns one line.
func (v Violation) String() string {
	if v.Invariant == "" {
		return v.What
	}
	return v.Invariant + ": " + v.What
}

// At schedules an event.
func (w *World) At(at time.Duration, e Event) { w.Queue.Push(max(at, w.Now), e) }

// After schedules a call.
func (w *World) After(d time.Duration, do func()) { w.At(w.Now+d, Func(do)) }

// Step runs the next event, and returns false if there is none.
func (w *World) Step() bool {
	if len(w.Queue.Entries) == 0 {
		return false
	}
	w.Steps++
	next := w.Queue.Pop()
	w.Now = max(w.Now, next.At)
	next.Event.Run()
	return true
}

// Tracef adds a line to the trace.
func (w *World) Tracef(format string, args ...any) {
	if w.Trace != nil {
		*w.Trace = append(*w.Trace, fmt.Sprintf("%-14s ", w.Now.Round(time.Millisecond))+fmt.Sprintf(format, args...))
	}
}

// Violatef records a violated invariant.
func (w *World) Violatef(invariant, format string, args ...any) {
	v := Violation{invariant, fmt.Sprintf(format, args...), format}
	w.Violations = append(w.Violations, v)
	w.Tracef("VIOLATED %s", v)
}
