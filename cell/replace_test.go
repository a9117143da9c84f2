package cell_test

import (
	"context"
	"errors"
	"testing"

	"github.com/pawlhq/pawl/cell"
)

// shelf is a cell that does and answers what a test says.
type shelf struct {
	cell.Value
	answer error // of the next write
	lands  bool  // the write lands in spite of the answer
	blind  error // of reads
}

func (s *shelf) Read(context.Context) (cell.Value, error) { return s.Value, s.blind }

func (s *shelf) Write(_ context.Context, version string, body []byte) (string, error) {
	if version != s.Version {
		return "", cell.ErrPrecondition
	}
	if s.answer == nil || s.lands {
		s.Value = cell.Value{Version: "of " + string(body), Body: body}
	}
	return s.Version, s.answer
}

func (*shelf) String() string { return "the shelf" }

func TestReplace(t *testing.T) {
	const old, ours = "of old", "of ours"
	for _, c := range []struct {
		name    string
		shelf   shelf
		version string // with which it begins
		fate    cell.Fate
		err     error
		after   string
	}{
		{"accepted", shelf{}, old, cell.Landed, nil, ours},
		{"silence, and there", shelf{answer: errSilent, lands: true}, old, cell.Landed, nil, ours},
		{"silence, and not there", shelf{answer: errSilent}, old, cell.Unclear, errSilent, old},
		{"silence, and no look", shelf{answer: errSilent, lands: true, blind: cell.ErrUnavailable}, old, cell.Unclear, cell.ErrUnavailable, old},
		{"another's", shelf{}, "of an older one", cell.Lost, cell.ErrPrecondition, "of an older one"},
		{"another's, and none expected", shelf{}, "", cell.Lost, cell.ErrPrecondition, ""},
		{"refused", shelf{answer: cell.ErrRefused}, old, cell.Lost, cell.ErrRefused, old},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.shelf.Value = cell.Value{Version: old, Body: []byte("old")}
			w := cell.Replace(&c.shelf, &c.version, []byte("ours"), func(body []byte) bool { return string(body) == "ours" })
			w.Pace = func(_ context.Context, _ int, answer error) error { return answer }
			fate, err := w.Run(t.Context())
			if fate != c.fate || !errors.Is(err, c.err) || c.version != c.after {
				t.Errorf("%v, %v, version %q; want %v, %v, %q", fate, err, c.version, c.fate, c.err, c.after)
			}
		})
	}
}
