package cell_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/pawlhq/pawl/cell"
)

var errNoAnswer = errors.New("no answer")

type lookResult struct {
	outcome cell.Outcome
	err     error
}

var (
	unchanged  = lookResult{cell.Unclear, nil}
	failedRead = lookResult{cell.Unclear, errors.New("read fails")}
)

type scriptedWrite struct {
	t       *testing.T
	answers []error
	looks   []lookResult
	*cell.Write
}

func newScriptedWrite(t *testing.T, trust cell.Trust, resolves int, answers []error, looks ...lookResult) *scriptedWrite {
	p := &scriptedWrite{t: t, answers: answers, looks: looks}
	p.Write = &cell.Write{
		Send: func(context.Context) error {
			if len(p.answers) == 0 {
				t.Fatal("unexpected request")
			}
			answer := p.answers[0]
			p.answers = p.answers[1:]
			return answer
		},
		Look: func(context.Context, error) (cell.Outcome, error) {
			if len(p.looks) == 0 {
				t.Fatal("unexpected read")
			}
			look := p.looks[0]
			p.looks = p.looks[1:]
			return look.outcome, look.err
		},
		Pace: func(_ context.Context, try int, answer error) error {
			if try == 3 {
				return fmt.Errorf("three times: %w", answer)
			}
			return nil
		},
		Trust: trust, Resolves: resolves,
	}
	return p
}

func (p *scriptedWrite) wantResult(outcome cell.Outcome, err error, unanswered int) {
	p.t.Helper()
	got, gotErr := p.Run(p.t.Context())
	if got != outcome || !errors.Is(gotErr, err) || p.Unanswered != unanswered {
		p.t.Errorf("%v, %v, %d unanswered; want %v, %v, %d", got, gotErr, p.Unanswered, outcome, err, unanswered)
	}
	if len(p.answers) > 0 || len(p.looks) > 0 {
		p.t.Errorf("%d requests and %d reads were not made", len(p.answers), len(p.looks))
	}
}

// In cases with several requests, all but the last one are unclear and not found.
func TestWrite(t *testing.T) {
	trusting := cell.Trust{Precondition: true, Conflict: true, Refusal: true}
	refused := cell.Refusal("denied")
	type answers = []error
	for _, c := range []struct {
		name       string
		trust      cell.Trust
		answers    answers
		looks      []lookResult
		outcome    cell.Outcome
		err        error
		unanswered int
	}{
		{"accepted", cell.Trust{}, answers{nil}, nil, cell.Landed, nil, 0},
		{"accepted after no answer", cell.Trust{}, answers{errNoAnswer, nil}, []lookResult{unchanged}, cell.Landed, nil, 1},

		{"unsent", cell.Trust{}, answers{cell.ErrUnsent, nil}, nil, cell.Landed, nil, 0},
		{"unsent three times", cell.Trust{}, answers{cell.ErrUnsent, cell.ErrUnsent, cell.ErrUnsent}, nil, cell.Lost, cell.ErrUnsent, 0},
		{"unsent after no answer", cell.Trust{}, answers{errNoAnswer, cell.ErrUnsent, cell.ErrUnsent}, []lookResult{unchanged}, cell.Unclear, cell.ErrUnsent, 1},

		{"refused permanently", cell.Trust{}, answers{refused}, nil, cell.Lost, cell.ErrRefused, 0},
		{"refused after no answer, found", cell.Trust{}, answers{errNoAnswer, refused}, []lookResult{unchanged, {cell.Landed, nil}}, cell.Landed, nil, 1},
		{"refused after no answer, not found", cell.Trust{}, answers{errNoAnswer, refused}, []lookResult{unchanged, unchanged}, cell.Unclear, cell.ErrRefused, 1},
		{"refused after no answer, trusted", trusting, answers{errNoAnswer, refused}, []lookResult{unchanged}, cell.Unclear, cell.ErrRefused, 1},
		{"refused after a conflict", cell.Trust{}, answers{cell.ErrConflict, refused}, []lookResult{unchanged, unchanged}, cell.Unclear, cell.ErrRefused, 0},

		{"412, not found", cell.Trust{}, answers{cell.ErrPrecondition, nil}, []lookResult{unchanged}, cell.Landed, nil, 0},
		{"412, found", cell.Trust{}, answers{cell.ErrPrecondition}, []lookResult{{cell.Landed, nil}}, cell.Landed, nil, 0},
		{"412, other value", cell.Trust{}, answers{cell.ErrPrecondition}, []lookResult{{cell.Lost, nil}}, cell.Lost, nil, 0},
		{"412, read fails", cell.Trust{}, answers{cell.ErrPrecondition}, []lookResult{failedRead}, cell.Unclear, failedRead.err, 1},
		{"412, trusted", trusting, answers{cell.ErrPrecondition}, nil, cell.Lost, nil, 0},
		{"412 after no answer, trusted, found", trusting, answers{errNoAnswer, cell.ErrPrecondition}, []lookResult{unchanged, {cell.Landed, nil}}, cell.Landed, nil, 1},

		{"409, not found", cell.Trust{}, answers{cell.ErrConflict, nil}, []lookResult{unchanged}, cell.Landed, nil, 0},
		{"409, found", cell.Trust{}, answers{cell.ErrConflict}, []lookResult{{cell.Landed, nil}}, cell.Landed, nil, 0},
		{"409, read fails", cell.Trust{}, answers{cell.ErrConflict}, []lookResult{failedRead}, cell.Unclear, failedRead.err, 0},
		{"409, trusted", trusting, answers{cell.ErrConflict, nil}, nil, cell.Landed, nil, 0},
		{"409 three times, trusted", trusting, answers{cell.ErrConflict, cell.ErrConflict, cell.ErrConflict}, nil, cell.Lost, cell.ErrConflict, 0},

		{"no answer, found", cell.Trust{}, answers{errNoAnswer}, []lookResult{{cell.Landed, nil}}, cell.Landed, nil, 0},
		{"no answer, superseded", cell.Trust{}, answers{errNoAnswer}, []lookResult{{cell.Superseded, nil}}, cell.Superseded, nil, 0},
		{"no answer, other value", cell.Trust{}, answers{errNoAnswer}, []lookResult{{cell.Lost, nil}}, cell.Lost, nil, 1},
		{"no answer, other value, with an error", cell.Trust{}, answers{errNoAnswer}, []lookResult{{cell.Lost, errNoAnswer}}, cell.Lost, errNoAnswer, 1},
		{"no answer, read fails", cell.Trust{}, answers{errNoAnswer}, []lookResult{failedRead}, cell.Unclear, failedRead.err, 1},
		{"two requests unanswered, found", cell.Trust{}, answers{errNoAnswer, errNoAnswer}, []lookResult{unchanged, {cell.Landed, nil}}, cell.Landed, nil, 1},
		{"three requests unanswered", cell.Trust{}, answers{errNoAnswer, errNoAnswer, errNoAnswer}, []lookResult{unchanged, unchanged, unchanged}, cell.Unclear, errNoAnswer, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			newScriptedWrite(t, c.trust, 1, c.answers, c.looks...).wantResult(c.outcome, c.err, c.unanswered)
		})
	}
}

func TestFindThatResolvesNothing(t *testing.T) {
	newScriptedWrite(t, cell.Trust{}, 0, []error{errNoAnswer}, lookResult{cell.Landed, nil}).wantResult(cell.Landed, nil, 1)
	newScriptedWrite(t, cell.Trust{}, 0, []error{cell.ErrPrecondition}, failedRead).wantResult(cell.Unclear, failedRead.err, 0)
}

func TestSharedWrite(t *testing.T) {
	refused := cell.Refusal("denied")
	for _, c := range []struct {
		look    lookResult
		outcome cell.Outcome
		err     error
	}{
		{lookResult{cell.Landed, nil}, cell.Landed, nil},
		{lookResult{cell.Lost, nil}, cell.Lost, nil},
		{unchanged, cell.Unclear, refused},
		{failedRead, cell.Unclear, failedRead.err},
	} {
		p := newScriptedWrite(t, cell.Trust{}, 0, []error{refused}, c.look)
		p.Shared = true
		p.wantResult(c.outcome, c.err, 0)
	}
}

func TestRunAgainRemembersRequests(t *testing.T) {
	p := newScriptedWrite(t, cell.Trust{}, 1, []error{errNoAnswer}, failedRead)
	p.wantResult(cell.Unclear, failedRead.err, 1)
	p.answers, p.looks = []error{cell.Refusal("denied")}, []lookResult{{cell.Landed, nil}}
	p.wantResult(cell.Landed, nil, 1)
}

func TestRefusal(t *testing.T) {
	denied, invalid := cell.Refusal("denied"), cell.Refusal("invalid")
	if !errors.Is(denied, cell.ErrRefused) || errors.Is(denied, invalid) || errors.Is(denied, cell.ErrUnclear) || denied.Error() != "denied" {
		t.Errorf("%v does not match ErrRefused, or matches another error", denied)
	}
}

func TestOutcomeNames(t *testing.T) {
	var names []string
	for f := cell.Unclear; f <= cell.Lost; f++ {
		names = append(names, f.String())
	}
	if got := strings.Join(names, " "); got != "unclear landed superseded lost" {
		t.Error(got)
	}
}
