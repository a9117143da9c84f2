package cell

import (
	"context"
	"errors"
	"fmt"
)

// Outcome is what became of a write.
type Outcome uint8

// The fates of a write.
const (
	// Unclear: a copy may have landed, or may land yet.
	Unclear Outcome = iota
	// Landed: it is what is there now.
	Landed
	// Superseded: it had landed, and another has written since.
	Superseded
	// Lost: it has not landed. Another has written instead, or the request was
	// refused.
	Lost
)

func (f Outcome) String() string { return [...]string{"unclear", "landed", "superseded", "lost"}[f] }

// Write is one write on its way: the same content under the same condition, sent
// until its outcome is known. It has no clock and no goroutines: what takes time is
// in its functions. It is not safe for concurrent use, and can be run again while
// its outcome is Unclear.
//
// # What an answer means
//
//	answer to the request      believed without a look if               so
//	accepted                   always                                   Landed
//	ErrUnsent                  always                                   sent again, as Pace allows
//	ErrConflict                Trust.Conflict                           sent again, as Pace allows
//	ErrPrecondition            Trust.Precondition, and no request       Lost
//	                           is unanswered
//	ErrRefused                 Trust.Refusal, or no request is in       Lost, or Unclear if an earlier request
//	                           doubt and the write is not Shared        is in doubt, with that error
//
// An answer that is not believed leaves its request in doubt: a refusal may be the
// answer to a copy that an SDK or a proxy sent of what had landed. So it is looked
// for:
//
//	answer to the request      what the look shows      so
//	any                        Landed, Superseded       that
//	any                        Lost                     Lost
//	ErrRefused                 Unclear                  Unclear, with that error
//	any other                  Unclear                  sent again, as Pace allows
//	any                        an error                 that error, and the outcome beside it
//
// Where Pace allows no more, or a refusal for good ends it, a write is Lost if no
// request is in doubt, and otherwise Unclear.
//
// # What is unanswered
//
// A request without an answer may land after everything else. Unanswered counts
// them. One whose answer is lost, and whose write is found then, is the one that
// landed: Resolves of them are answered. A refusal does not tell which copy had
// landed, so a find after one resolves none. Where the look after a failed
// precondition fails, the request counts as unanswered, if a find could have
// resolved it.
type Write struct {
	// Send sends the request once.
	Send func(ctx context.Context) error
	// Look reads what is there after an answer that was not believed, and says
	// what it means for the write: Unclear if nothing has changed. Its error ends
	// the write.
	Look func(ctx context.Context, answer error) (Outcome, error)
	// Pace waits until the request is to be sent again, after it was sent try
	// times in this run, or returns the error that ends the write.
	Pace func(ctx context.Context, try int, answer error) error
	// Trust says which refusals are believed without a look.
	Trust Trust
	// Shared: others send the same content. A refusal for good is looked into even if
	// no request is in doubt, because one of theirs may have landed.
	Shared bool
	// Resolves is how many unanswered requests a find resolves: 1 if what is
	// found tells whose it is, and 0 if it does not, as after a removal.
	Resolves int

	// Unanswered is how many requests have had no answer, and may land yet.
	Unanswered int
	// doubt says that a request was sent whose answer was not believed.
	doubt bool
}

// Trust says what a refusal proves.
type Trust struct {
	// Precondition: a failed one proves that the write is lost, unless a request
	// is unanswered.
	Precondition bool
	// Conflict: one proves that the request wrote nothing.
	Conflict bool
	// Refusal: one for good is believed also after other requests, for what is
	// unanswered then is told by Unanswered.
	Refusal bool
}

// Run sends the write until its outcome is known, or Pace or Look end it.
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

// unlanded is the outcome of a write that ends without having been found.
func (w *Write) endOutcome() Outcome {
	if w.doubt {
		return Unclear
	}
	return Lost
}

// look looks for the write. If nothing has changed, and it may be sent again, it
// returns Unclear without an error.
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

// Replace returns a write that replaces the body of c if c still has *version. An empty
// version requires that c has no value. After Landed, *version is the new version. isOurs
// reports whether only this write can have written a body. A Lost write returns an error:
// ErrPrecondition, or the refusal. The caller sets Pace.
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
