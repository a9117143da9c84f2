package cell_test

import (
	"context"
	"errors"
	"testing"

	"github.com/pawlhq/pawl/cell"
)

type fakeCell struct {
	cell.Value
	answer  error // of the next write
	lands   bool  // in spite of the answer
	readErr error
}

func (s *fakeCell) Read(context.Context) (cell.Value, error) { return s.Value, s.readErr }

func (s *fakeCell) Write(_ context.Context, version string, body []byte) (string, error) {
	if version != s.Version {
		return "", cell.ErrPrecondition
	}
	if s.answer == nil || s.lands {
		s.Value = cell.Value{Version: "of " + string(body), Body: body}
	}
	return s.Version, s.answer
}

func (*fakeCell) String() string { return "the shelf" }

func TestReplace(t *testing.T) {
	const old, ours = "of old", "of ours"
	for _, c := range []struct {
		name    string
		shelf   fakeCell
		version string
		outcome cell.Outcome
		err     error
		after   string
	}{
		{"accepted", fakeCell{}, old, cell.Landed, nil, ours},
		{"no answer, found", fakeCell{answer: errNoAnswer, lands: true}, old, cell.Landed, nil, ours},
		{"no answer, not found", fakeCell{answer: errNoAnswer}, old, cell.Unclear, errNoAnswer, old},
		{"no answer, and read fails", fakeCell{answer: errNoAnswer, lands: true, readErr: cell.ErrUnavailable}, old, cell.Unclear, cell.ErrUnavailable, old},
		{"other value", fakeCell{}, "of an older one", cell.Lost, cell.ErrPrecondition, "of an older one"},
		{"other value, none expected", fakeCell{}, "", cell.Lost, cell.ErrPrecondition, ""},
		{"refused", fakeCell{answer: cell.ErrRefused}, old, cell.Lost, cell.ErrRefused, old},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.shelf.Value = cell.Value{Version: old, Body: []byte("old")}
			w := cell.Replace(&c.shelf, &c.version, []byte("ours"), func(body []byte) bool { return string(body) == "ours" })
			w.Pace = func(_ context.Context, _ int, answer error) error { return answer }
			outcome, err := w.Run(t.Context())
			if outcome != c.outcome || !errors.Is(err, c.err) || c.version != c.after {
				t.Errorf("%v, %v, version %q; want %v, %v, %q", outcome, err, c.version, c.outcome, c.err, c.after)
			}
		})
	}
}
