package simkit

const maxTries = 4000

// Shrink searches for a tape that still fails and is shorter or has more zeros. fails runs the world of a
// tape, and returns the drawn choices and whether it failed.
func Shrink(tape []uint32, fails func([]uint32) ([]uint32, bool)) []uint32 {
	tries := 0
	attempt := func(try []uint32) bool {
		tries++
		drawn, bad := fails(try)
		if bad && better(drawn, tape) {
			tape = trimmed(drawn)
			return true
		}
		return false
	}
	for again := true; again && tries < maxTries; {
		again = false
		for size := len(tape) / 2; size > 0 && tries < maxTries; size /= 2 {
			for at := 0; at+size <= len(tape) && tries < maxTries; {
				if attempt(without(tape, at, size)) || attempt(zeroed(tape, at, size)) {
					again = true
					continue
				}
				at += size
			}
		}
	}
	return tape
}

func better(a, b []uint32) bool {
	a, b = trimmed(a), trimmed(b)
	if len(a) != len(b) {
		return len(a) < len(b)
	}
	return nonZeros(a) < nonZeros(b)
}

// Trailing zeros are redundant, because a tape returns zeros after its end.
func trimmed(t []uint32) []uint32 {
	for len(t) > 0 && t[len(t)-1] == 0 {
		t = t[:len(t)-1]
	}
	return t
}

func nonZeros(t []uint32) (n int) {
	for _, v := range t {
		if v != 0 {
			n++
		}
	}
	return n
}

func without(t []uint32, at, n int) []uint32 {
	return append(append(make([]uint32, 0, len(t)), t[:at]...), t[at+n:]...)
}

func zeroed(t []uint32, at, n int) []uint32 {
	z := append(make([]uint32, 0, len(t)), t...)
	clear(z[at : at+n])
	return z
}
