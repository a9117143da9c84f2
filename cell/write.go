package cell

import (
	"context"
	"errors"
	"fmt"
)

// Outcome is the outcome of a write.
type Outcome uint8

const (
	// Unclear means that a copy may have landed, or may still land.
	Unclear Outcome = iota
	// Landed means that the write is the current value.
	Landed
	// Superseded means that the write had landed, and then another one.
	Superseded
	// Lost means that the write has not landed and will not land.
	Lost
)

func (f Outcome) String() string { return [...]string{"unclear", "landed", "superseded", "lost"}[f] }

// Write is one conditional write, sent until its outcome is known. It is not safe for concurrent
// use. It can be run again while its outcome is Unclear.
//
// # Answers
//
//	answer to the request      believed without a read if               outcome
//	accepted                   always                                   Landed
//	ErrUnsent                  always                                   sent again, if Pace allows it
//	ErrConflict                Trust.Conflict                           sent again, if Pace allows it
//	ErrPrecondition            Trust.Precondition, and every request    Lost
//	                           was answered
//	ErrRefused                 Trust.Refusal; or no earlier request     Lost; or Unclear with that error, if an
//	                           is in doubt, and the write is not        earlier request is in doubt
//	                           Shared
//
// After any other answer, the request is in doubt: a refusal may answer a second copy that an SDK
// or a proxy sent. Look reads the value:
//
//	answer to the request      Look returns             outcome
//	any                        Landed, Superseded       the same
//	any                        Lost                     Lost
//	ErrRefused                 Unclear                  Unclear, with that error
//	any other                  Unclear                  sent again, if Pace allows it
//	any                        an error                 as Look returns it, with that error
//
// If Pace or a refusal ends the write, it is Unclear if a request is in doubt, and Lost otherwise.
//
// # Unanswered requests
//
// A request without an answer may land after all later requests. If Look finds the write, that
// request has landed, so Run subtracts Resolves from Unanswered. After a refusal, it is unknown
// which copy has landed. If Look fails after a failed precondition, Run adds Resolves.
type Write struct {
	// Send sends the request once.
	Send func(ctx context.Context) error
	// Look reads the value, and returns the outcome, Unclear if the value is unchanged. Its error
	// ends the write.
	Look func(ctx context.Context, answer error) (Outcome, error)
	// Pace waits after the request was sent try times. Its error ends the write.
	Pace func(ctx context.Context, try int, answer error) error
	// Trust selects the refusals that are believed without a read.
	Trust Trust
	// Shared means that other processes send the same content. Then Run calls Look even after a
	// permanent refusal of the first request.
	Shared bool
	// Resolves is the number of unanswered requests that finding the write resolves: 1 if the value
	// identifies its writer, otherwise 0.
	Resolves int

	// Unanswered is the number of requests that may still land.
	Unanswered int
	doubt      bool // after an answer that was not believed
}

// Trust selects the refusals that prove an outcome.
type Trust struct {
	// Precondition: a failed precondition means Lost, unless a request is unanswered.
	Precondition bool
	// Conflict: a conflict means that the request wrote nothing.
	Conflict bool
	// Refusal: a permanent refusal is also believed after earlier requests.
	Refusal bool
}

// Run sends the write until its outcome is known, or until Pace or Look ends it.
func (w *Write) Run(ctx context.Context) (Outcome, error) {
	for try := 1; ; try++ {
		answer := w.Send(ctx)
		switch {
		case answer == nil:
			return Landed, nil
		case errors.Is(answer, ErrRefused) && (w.Trust.Refusal || !w.doubt && !w.Shared):
			return w.endOutcome(), answer
		case errors.Is(answer, ErrPrecondition) && w.Trust.Precondition && w.Unanswered == 0:
			return Lost, nil
		case errors.Is(answer, ErrUnsent), errors.Is(answer, ErrConflict) && w.Trust.Conflict:
		default:
			w.doubt = true
			if outcome, err := w.look(ctx, answer); outcome != Unclear || err != nil {
				return outcome, err
			}
		}
		if err := w.Pace(ctx, try, answer); err != nil {
			return w.endOutcome(), err
		}
	}
}

func (w *Write) endOutcome() Outcome {
	if w.doubt {
		return Unclear
	}
	return Lost
}

func (w *Write) look(ctx context.Context, answer error) (Outcome, error) {
	refused := errors.Is(answer, ErrPrecondition) || errors.Is(answer, ErrConflict) || errors.Is(answer, ErrRefused)
	if !refused {
		w.Unanswered++
	}
	outcome, err := w.Look(ctx, answer)
	switch found := outcome == Landed || outcome == Superseded; {
	case found && !refused:
		w.Unanswered -= w.Resolves
	case outcome == Unclear && err != nil && errors.Is(answer, ErrPrecondition):
		w.Unanswered += w.Resolves
	case outcome == Unclear && err == nil && errors.Is(answer, ErrRefused):
		return Unclear, answer
	}
	return outcome, err
}

// Replace returns a write that replaces the body of c if c still has *version. It updates *version.
// isOurs reports whether only this write can have written a body. A Lost write returns
// ErrPrecondition or the refusal. The caller sets Pace.
func Replace(c Cell, version *string, body []byte, isOurs func(body []byte) bool) *Write {
	w := &Write{Resolves: 1}
	w.Send = func(ctx context.Context) error {
		next, err := c.Write(ctx, *version, body)
		if err == nil {
			*version = next
		}
		return err
	}
	w.Look = func(ctx context.Context, _ error) (Outcome, error) {
		now, err := c.Read(ctx)
		switch {
		case err != nil:
			return Unclear, err
		case isOurs(now.Body):
			*version = now.Version
			return Landed, nil
		case now.Version != *version:
			return Lost, fmt.Errorf("%w: %s has changed", ErrPrecondition, c)
		}
		return Unclear, nil
	}
	return w
}
