package event

import (
	"fmt"
	"strings"
)

// MaxSequencer is the longest sequencer accepted, in hexadecimal digits. The
// longest known is Azure's, with 48.
const MaxSequencer = 128

// Sequencer orders the changes of one object key. Sequencers of two different
// keys say nothing about each other, which is why the type has neither < nor
// ==: the only comparison is [Sequencer.CompareSameKey], whose caller vouches
// that both belong to one key.
//
// The rule is Amazon's: pad the shorter with zeros on the right, then compare
// as text.
// https://docs.aws.amazon.com/AmazonS3/latest/userguide/notification-content-structure.html
type Sequencer struct {
	_     [0]func() // no ==
	canon string
	raw   string
}

// ParseSequencer reads a sequencer in hexadecimal. Anything else is an error,
// never ordered in silence. The empty string is the zero Sequencer.
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
		canon = "0" // all zeros is a sequencer; none is not
	}
	return Sequencer{canon: canon, raw: raw}, nil
}

// IsZero reports that there is no sequencer.
func (s Sequencer) IsZero() bool { return s.canon == "" }

// String returns the canonical form: upper-case hexadecimal without trailing
// zeros. Comparing two canonical forms byte by byte, in Go or under a binary
// collation, gives the order of CompareSameKey.
func (s Sequencer) String() string { return s.canon }

// Raw returns the sequencer as the store wrote it, for display.
func (s Sequencer) Raw() string { return s.raw }

// CompareSameKey returns -1, 0 or +1 as s orders before, with or after t. Both
// must belong to the same object key: for two keys the answer means nothing.
// The zero Sequencer orders before every other.
func (s Sequencer) CompareSameKey(t Sequencer) int { return strings.Compare(s.canon, t.canon) }

// SameShape reports whether s and t are written alike: equally long or with
// equally many leading zeros, and not one in small letters and the other in
// capitals. A store that changes the shape on one key can mis-sort it, because
// the rule aligns on the left; the change deserves an alarm. Digits at the end
// may come and go, as documented.
func (s Sequencer) SameShape(t Sequencer) bool {
	if s.IsZero() || t.IsZero() {
		return true
	}
	if len(s.raw) != len(t.raw) && leadingZeros(s.raw) != leadingZeros(t.raw) {
		return false
	}
	return !(isLower(s.raw) && isUpper(t.raw) || isLower(t.raw) && isUpper(s.raw))
}

// MarshalText writes the raw form, from which UnmarshalText restores all.
func (s Sequencer) MarshalText() ([]byte, error) { return []byte(s.raw), nil }

// UnmarshalText reads what MarshalText wrote.
func (s *Sequencer) UnmarshalText(b []byte) (err error) {
	*s, err = ParseSequencer(string(b))
	return err
}

func leadingZeros(s string) int { return len(s) - len(strings.TrimLeft(s, "0")) }

// isLower and isUpper report that s has letters, all of that case. Azure writes
// both in one sequencer; digits alone are of neither.
func isLower(s string) bool { return s == strings.ToLower(s) && s != strings.ToUpper(s) }
func isUpper(s string) bool { return s == strings.ToUpper(s) && s != strings.ToLower(s) }
