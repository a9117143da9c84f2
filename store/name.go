package store

import (
	"errors"
	"strings"
)

// Join returns a name whose byte order is the order of the tuple of parts. It puts 00 01 between
// parts, and writes 00 in a part as 00 FF.
func Join(parts ...string) string {
	var b strings.Builder
	for i, p := range parts {
		if i > 0 {
			b.WriteString(separator)
		}
		for {
			before, after, found := strings.Cut(p, "\x00")
			b.WriteString(before)
			if !found {
				break
			}
			b.WriteString("\x00\xff")
			p = after
		}
	}
	return b.String()
}

const separator = "\x00\x01"

var errName = errors.New("the name has a 00 byte without 01 or FF after it")

// Split returns the parts of a name from Join.
func Split(name string) ([]string, error) {
	parts := strings.Split(name, separator)
	for i, p := range parts {
		if strings.Count(p, "\x00") != strings.Count(p, "\x00\xff") {
			return nil, errName
		}
		parts[i] = strings.ReplaceAll(p, "\x00\xff", "\x00")
	}
	return parts, nil
}

// End returns the first name after all names with a prefix, for Before in a [Range], or "" (no
// bound) if there is none.
func End(prefix string) string {
	for i := len(prefix) - 1; i >= 0; i-- {
		if prefix[i] < 0xff {
			return prefix[:i] + string([]byte{prefix[i] + 1})
		}
	}
	return ""
}
