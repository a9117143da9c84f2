package archive

import (
	"fmt"
	"strings"
)

const begin Number = "0"

// maxDigits bounds the length of a number. Numbers of Kinesis have 56 digits.
const maxDigits = 200

// ParseNumber parses decimal digits without a leading zero.
func ParseNumber(s string) (Number, error) {
	if s == "" || len(s) > maxDigits || s[0] == '0' && s != "0" || strings.Trim(s, "0123456789") != "" {
		return "", fmt.Errorf("%.80q is not a sequence number: want 1 to %d decimal digits without a leading zero", s, maxDigits)
	}
	return Number(s), nil
}

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
