package cell_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/pawlhq/pawl/cell"
)

// errSilent is an answer without a kind: a time-out, say.
var errSilent = errors.New("no answer")

// found is what a look shows.
type found struct {
	fate cell.Fate
	err  error
}

var (
	unchanged = found{cell.Unclear, nil}
	blind     = found{cell.Unclear, errors.New("no look")}
)

// played is a write whose answers and looks are given.
type played struct {
	t       *testing.T
	answers []error
	looks   []found
	*cell.Write
}

func play(t *testing.T, trust cell.Trust, resolves int, answers []error, looks ...found) *played {
	p := &played{t: t, answers: answers, looks: looks}
	p.Write = &cell.Write{
		Send: func(context.Context) error {
			if len(p.answers) == 0 {
				t.Fatal("it is sent once more")
			}
			answer := p.answers[0]
			p.answers = p.answers[1:]
			return answer
		},
		Look: func(context.Context, error) (cell.Fate, error) {
			if len(p.looks) == 0 {
				t.Fatal("it is looked for once more")
			}
			look := p.looks[0]
			p.looks = p.looks[1:]
			return look.fate, look.err
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

// ends checks a run.
func (p *played) ends(fate cell.Fate, err error, unanswered int) {
	p.t.Helper()
	got, gotErr := p.Run(p.t.Context())
	if got != fate || !errors.Is(gotErr, err) || p.Unanswered != unanswered {
		p.t.Errorf("%v, %v, %d unanswered; want %v, %v, %d", got, gotErr, p.Unanswered, fate, err, unanswered)
	}
	if len(p.answers) > 0 || len(p.looks) > 0 {
		p.t.Errorf("%d requests and %d looks were not made", len(p.answers), len(p.looks))
	}
}

// TestWrite is the tables of Write, with all requests before the last one unclear
// and looked for in vain where there are several.
func TestWrite(t *testing.T) {
	trusting := cell.Trust{Precondition: true, Conflict: true, Refusal: true}
	refused := cell.Refusal("denied")
	type answers = []error
	for _, c := range []struct {
		name       string
		trust      cell.Trust
		answers    answers
		looks      []found
		fate       cell.Fate
		err        error
		unanswered int
	}{
		{"accepted", cell.Trust{}, answers{nil}, nil, cell.Landed, nil, 0},
		{"accepted after silence", cell.Trust{}, answers{errSilent, nil}, []found{unchanged}, cell.Landed, nil, 1},

		{"unsent", cell.Trust{}, answers{cell.ErrUnsent, nil}, nil, cell.Landed, nil, 0},
		{"unsent three times", cell.Trust{}, answers{cell.ErrUnsent, cell.ErrUnsent, cell.ErrUnsent}, nil, cell.Lost, cell.ErrUnsent, 0},
		{"unsent after silence", cell.Trust{}, answers{errSilent, cell.ErrUnsent, cell.ErrUnsent}, []found{unchanged}, cell.Unclear, cell.ErrUnsent, 1},

		{"refused for good", cell.Trust{}, answers{refused}, nil, cell.Lost, cell.ErrRefused, 0},
		{"refused after silence, and there", cell.Trust{}, answers{errSilent, refused}, []found{unchanged, {cell.Landed, nil}}, cell.Landed, nil, 1},
		{"refused after silence, and not there", cell.Trust{}, answers{errSilent, refused}, []found{unchanged, unchanged}, cell.Unclear, cell.ErrRefused, 1},
		{"refused after silence, trusted", trusting, answers{errSilent, refused}, []found{unchanged}, cell.Unclear, cell.ErrRefused, 1},
		{"refused after a conflict", cell.Trust{}, answers{cell.ErrConflict, refused}, []found{unchanged, unchanged}, cell.Unclear, cell.ErrRefused, 0},

		{"412, not there", cell.Trust{}, answers{cell.ErrPrecondition, nil}, []found{unchanged}, cell.Landed, nil, 0},
		{"412, and there", cell.Trust{}, answers{cell.ErrPrecondition}, []found{{cell.Landed, nil}}, cell.Landed, nil, 0},
		{"412, another's", cell.Trust{}, answers{cell.ErrPrecondition}, []found{{cell.Lost, nil}}, cell.Lost, nil, 0},
		{"412, no look", cell.Trust{}, answers{cell.ErrPrecondition}, []found{blind}, cell.Unclear, blind.err, 1},
		{"412, trusted", trusting, answers{cell.ErrPrecondition}, nil, cell.Lost, nil, 0},
		{"412 after silence, trusted, and there", trusting, answers{errSilent, cell.ErrPrecondition}, []found{unchanged, {cell.Landed, nil}}, cell.Landed, nil, 1},

		{"409, not there", cell.Trust{}, answers{cell.ErrConflict, nil}, []found{unchanged}, cell.Landed, nil, 0},
		{"409, and there", cell.Trust{}, answers{cell.ErrConflict}, []found{{cell.Landed, nil}}, cell.Landed, nil, 0},
		{"409, no look", cell.Trust{}, answers{cell.ErrConflict}, []found{blind}, cell.Unclear, blind.err, 0},
		{"409, trusted", trusting, answers{cell.ErrConflict, nil}, nil, cell.Landed, nil, 0},
		{"409 three times, trusted", trusting, answers{cell.ErrConflict, cell.ErrConflict, cell.ErrConflict}, nil, cell.Lost, cell.ErrConflict, 0},

		{"silence, and there", cell.Trust{}, answers{errSilent}, []found{{cell.Landed, nil}}, cell.Landed, nil, 0},
		{"silence, and more on top", cell.Trust{}, answers{errSilent}, []found{{cell.Superseded, nil}}, cell.Superseded, nil, 0},
		{"silence, another's", cell.Trust{}, answers{errSilent}, []found{{cell.Lost, nil}}, cell.Lost, nil, 1},
		{"silence, another's, and a reason", cell.Trust{}, answers{errSilent}, []found{{cell.Lost, errSilent}}, cell.Lost, errSilent, 1},
		{"silence, no look", cell.Trust{}, answers{errSilent}, []found{blind}, cell.Unclear, blind.err, 1},
		{"silence twice, and there", cell.Trust{}, answers{errSilent, errSilent}, []found{unchanged, {cell.Landed, nil}}, cell.Landed, nil, 1},
		{"silence three times", cell.Trust{}, answers{errSilent, errSilent, errSilent}, []found{unchanged, unchanged, unchanged}, cell.Unclear, errSilent, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			play(t, c.trust, 1, c.answers, c.looks...).ends(c.fate, c.err, c.unanswered)
		})
	}
}

// TestWriteThatTellsNothing: where a find does not tell whose it is, it resolves
// nothing, and a refusal leaves nothing unanswered.
func TestWriteThatTellsNothing(t *testing.T) {
	play(t, cell.Trust{}, 0, []error{errSilent}, found{cell.Landed, nil}).ends(cell.Landed, nil, 1)
	play(t, cell.Trust{}, 0, []error{cell.ErrPrecondition}, blind).ends(cell.Unclear, blind.err, 0)
}

// TestSharedWrite: what others may have stored is looked for also after the first
// refusal for good.
func TestSharedWrite(t *testing.T) {
	refused := cell.Refusal("denied")
	for _, c := range []struct {
		look found
		fate cell.Fate
		err  error
	}{
		{found{cell.Landed, nil}, cell.Landed, nil},
		{found{cell.Lost, nil}, cell.Lost, nil},
		{unchanged, cell.Unclear, refused},
		{blind, cell.Unclear, blind.err},
	} {
		p := play(t, cell.Trust{}, 0, []error{refused}, c.look)
		p.Shared = true
		p.ends(c.fate, c.err, 0)
	}
}

// TestWriteAgain: a write that is run again remembers what it has sent.
func TestWriteAgain(t *testing.T) {
	p := play(t, cell.Trust{}, 1, []error{errSilent}, blind)
	p.ends(cell.Unclear, blind.err, 1)
	p.answers, p.looks = []error{cell.Refusal("denied")}, []found{{cell.Landed, nil}}
	p.ends(cell.Landed, nil, 1)
}

func TestRefusal(t *testing.T) {
	denied, invalid := cell.Refusal("denied"), cell.Refusal("invalid")
	if !errors.Is(denied, cell.ErrRefused) || errors.Is(denied, invalid) || errors.Is(denied, cell.ErrUnclear) || denied.Error() != "denied" {
		t.Errorf("%v is not itself, or not a refusal", denied)
	}
}

func TestFateNames(t *testing.T) {
	var names []string
	for f := cell.Unclear; f <= cell.Lost; f++ {
		names = append(names, f.String())
	}
	if got := strings.Join(names, " "); got != "unclear landed superseded lost" {
		t.Error(got)
	}
}
