package simkit

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/bits"
	"time"
)

// Tape is the source of all choices of a world: a seed, or a recording followed by zeros. Zero always means
// the normal case: no fault, no delay, or the first of several alternatives.
type Tape struct {
	state    uint64
	replay   []uint32
	replays  bool
	recorded []uint32
}

// NewTape returns the tape of a seed.
func NewTape(seed uint64) *Tape {
	return &Tape{state: seed*0x9E3779B97F4A7C15 + 1, recorded: make([]uint32, 0, 1024)}
}

// ReplayTape returns a tape that replays a recording.
func ReplayTape(recorded []uint32) *Tape { return &Tape{replay: recorded, replays: true} }

// next implements SplitMix64. https://doi.org/10.1145/2660193.2660195
func (t *Tape) next() uint64 {
	t.state += 0x9E3779B97F4A7C15
	z := t.state
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return z ^ z>>31
}

// Choose returns a number in [0, n).
func (t *Tape) Choose(n int) int {
	if n <= 1 {
		return 0
	}
	var v uint32
	if !t.replays {
		hi, _ := bits.Mul64(t.next(), uint64(n))
		v = uint32(hi)
	} else if i := len(t.recorded); i < len(t.replay) {
		v = t.replay[i] % uint32(n)
	}
	t.recorded = append(t.recorded, v)
	return int(v)
}

// Recorded returns the choices so far, which must not be modified.
func (t *Tape) Recorded() []uint32 { return t.recorded }

// Rewind makes the tape replay these choices.
func (t *Tape) Rewind(choices ...uint32) {
	t.recorded, t.replay, t.replays = t.recorded[:0], append(t.replay[:0], choices...), true
}

// Chance returns true with a probability of perMille. If it is 0, Chance draws nothing.
func (t *Tape) Chance(perMille int) bool {
	return perMille > 0 && t.Choose(1000) >= 1000-perMille
}

// UpTo returns a duration in [0, d), in whole milliseconds.
func (t *Tape) UpTo(d time.Duration) time.Duration {
	return time.Duration(t.Choose(int(d/time.Millisecond))) * time.Millisecond
}

// EncodeTape returns a recording as text.
func EncodeTape(recorded []uint32) string {
	b := make([]byte, 0, 2*len(recorded))
	for _, v := range recorded {
		b = binary.AppendUvarint(b, uint64(v))
	}
	return hex.EncodeToString(b)
}

// DecodeTape decodes the text of EncodeTape.
func DecodeTape(text string) ([]uint32, error) {
	b, err := hex.DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("a tape is hexadecimal: %w", err)
	}
	var recorded []uint32
	for len(b) > 0 {
		v, n := binary.Uvarint(b)
		if n <= 0 || v > 1<<32-1 {
			return nil, fmt.Errorf("the tape is damaged after %d choices", len(recorded))
		}
		recorded, b = append(recorded, uint32(v)), b[n:]
	}
	return recorded, nil
}

// Pick draws one of the choices.
func Pick[T any](t *Tape, choices ...T) T { return choices[t.Choose(len(choices))] }
