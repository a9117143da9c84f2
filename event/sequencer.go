package event

import (
	"fmt"
	"strings"
)

// MaxSequencer is the maximum length of a sequencer, in hexadecimal digits. The longest known
// ones are Azure's, with 48.
const MaxSequencer = 128

// Sequencer orders the changes of one object key. Sequencers of different keys are not comparable; use only
// [Sequencer.CompareSameKey].
//
// The rule is Amazon's: pad the shorter one with zeros on the right, then compare as text.
// https://docs.aws.amazon.com/AmazonS3/latest/userguide/notification-content-structure.html
type Sequencer struct {
	_     [0]func() // prevents ==
	canon string
	raw   string
}

// ParseSequencer parses hexadecimal text. The empty string gives the zero Sequencer.
func ParseSequencer(raw string) (Sequencer, error) {
	if len(raw) > MaxSequencer {
		return Sequencer{}, fmt.Errorf("sequencer of %d digits: at most %d are accepted", len(raw), MaxSequencer)
	}
	lower := false
	for i := range len(raw) {
		switch c := raw[i]; {
		case '0' <= c && c <= '9', 'A' <= c && c <= 'F':
		case 'a' <= c && c <= 'f':
			lower = true
		default:
			return Sequencer{}, fmt.Errorf("sequencer %s is not hexadecimal", Quote(raw))
		}
	}
	canon := raw
	if lower {
		canon = strings.ToUpper(raw)
	}
	canon = strings.TrimRight(canon, "0")
	if canon == "" && raw != "" {
		canon = "0" // differs from a missing sequencer
	}
	return Sequencer{canon: canon, raw: raw}, nil
}

// IsZero reports whether there is no sequencer.
func (s Sequencer) IsZero() bool { return s.canon == "" }

// String returns the canonical form: upper-case hexadecimal without trailing zeros. Its byte order is that
// of CompareSameKey.
func (s Sequencer) String() string { return s.canon }

// Raw returns the sequencer as the store wrote it.
func (s Sequencer) Raw() string { return s.raw }

// CompareSameKey returns -1, 0 or +1 if s is before, equal to or after t. Both must belong to the same
// object key. The zero Sequencer is before all others.
func (s Sequencer) CompareSameKey(t Sequencer) int { return strings.Compare(s.canon, t.canon) }

// SameShape reports whether s and t have equal length or equally many leading zeros, and not different
// cases. A store that changes the shape for one key can cause a wrong order, because sequencers are aligned
// on the left.
func (s Sequencer) SameShape(t Sequencer) bool {
	if s.IsZero() || t.IsZero() {
		return true
	}
	if len(s.raw) != len(t.raw) && leadingZeros(s.raw) != leadingZeros(t.raw) {
		return false
	}
	return !(isLower(s.raw) && isUpper(t.raw) || isLower(t.raw) && isUpper(s.raw))
}

// MarshalText returns the raw form.
func (s Sequencer) MarshalText() ([]byte, error) { return []byte(s.raw), nil }

// UnmarshalText parses the result of MarshalText.
func (s *Sequencer) UnmarshalText(b []byte) (err error) {
	*s, err = ParseSequencer(string(b))
	return err
}

func leadingZeros(s string) int { return len(s) - len(strings.TrimLeft(s, "0")) }

// Both need a letter. Azure mixes cases in one sequencer.
func isLower(s string) bool { return s == strings.ToLower(s) && s != strings.ToUpper(s) }
func isUpper(s string) bool { return s == strings.ToUpper(s) && s != strings.ToLower(s) }
