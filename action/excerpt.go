package action

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxExcerpt is how much of a foreign program's words an error carries, in
// bytes.
const MaxExcerpt = 500

// Excerpt makes foreign output fit for an error or a log line: one line of
// printable characters. Runs of white space become one space, everything else
// that does not belong on a terminal a dot.
func Excerpt(b []byte) string {
	var out strings.Builder
	space := false
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		b = b[n:]
		if unicode.IsSpace(r) {
			space = out.Len() > 0
			continue
		}
		if space {
			out.WriteByte(' ')
			space = false
		}
		if !unicode.IsPrint(r) || r == utf8.RuneError {
			r = '.'
		}
		out.WriteRune(r)
	}
	return out.String()
}
