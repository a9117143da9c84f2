package action

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxExcerpt limits external output in an error, in bytes.
const MaxExcerpt = 500

// Excerpt converts external output to one line of printable characters. It replaces white space
// by single spaces, and each other unprintable character by a dot.
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
