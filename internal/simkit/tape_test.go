package simkit_test

import (
	"slices"
	"testing"
	"time"

	"github.com/pawlhq/pawl/internal/simkit"
)

func TestReplay(t *testing.T) {
	draw := func(from *simkit.Tape) []int {
		return []int{from.Choose(10), from.Choose(1 << 30), simkit.Pick(from, 7, 8, 9), int(from.UpTo(time.Hour)), from.Choose(1)}
	}
	first := simkit.NewTape(7)
	want := draw(first)
	recorded, err := simkit.DecodeTape(simkit.EncodeTape(first.Recorded()))
	if err != nil {
		t.Fatal(err)
	}
	again := simkit.ReplayTape(recorded)
	if got := draw(again); !slices.Equal(got, want) {
		t.Errorf("replayed %v, want %v", got, want)
	}
	if again.Choose(10) != 0 || again.Chance(999) {
		t.Error("a choice after the end of a recording is not 0")
	}
	if slices.Equal(draw(simkit.NewTape(8)), want) {
		t.Error("another seed draws the same")
	}
}

func TestShrink(t *testing.T) {
	long := make([]uint32, 300)
	for i := range long {
		long[i] = uint32(i % 7)
	}
	short := simkit.Shrink(long, func(try []uint32) ([]uint32, bool) {
		return try, slices.Contains(try, 3) && slices.Contains(try, 5)
	})
	if slices.Sort(short); !slices.Equal(short, []uint32{3, 5}) {
		t.Errorf("shrunk to %v, want a 3 and a 5", short)
	}
}

func TestDecodeTapeRejects(t *testing.T) {
	for _, text := range []string{"zz", "80", "ffffffffff01"} {
		if got, err := simkit.DecodeTape(text); err == nil {
			t.Errorf("Decode(%q) = %v, want an error", text, got)
		}
	}
}
