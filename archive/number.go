package archive

import (
	"fmt"
	"strings"
)

// begin is the number before all of a shard's.
const begin Number = "0"

// maxDigits bounds a number. Those of Kinesis have 56 digits.
const maxDigits = 200

// ParseNumber reads decimal digits without a leading zero.
func ParseNumber(s string) (Number, error) {
	if s == "" || len(s) > maxDigits || s[0] == '0' && s != "0" || strings.Trim(s, "0123456789") != "" {
		return "", fmt.Errorf("%.80q is not a sequence number: want 1 to %d decimal digits without a leading zero", s, maxDigits)
	}
	return Number(s), nil
}

// before returns the number that is smaller by one. That of "0" is itself.
func (n Number) before() Number {
	d := []byte(n)
	i := len(d) - 1
	for ; i >= 0 && d[i] == '0'; i-- {
		d[i] = '9'
	}
	if i < 0 {
		return begin
	}
	d[i]--
	if d[0] == '0' && len(d) > 1 {
		d = d[1:]
	}
	return Number(d)
}

// after returns the number that is larger by one.
func (n Number) after() Number {
	d := []byte(n)
	i := len(d) - 1
	for ; i >= 0 && d[i] == '9'; i-- {
		d[i] = '0'
	}
	if i < 0 {
		return Number("1" + string(d))
	}
	d[i]++
	return Number(d)
}

// less reports that n comes before m.
func (n Number) less(m Number) bool { return n.Compare(m) < 0 }

func earlier(n, m Number) Number {
	if n.less(m) {
		return n
	}
	return m
}

func later(n, m Number) Number {
	if n.less(m) {
		return m
	}
	return n
}
