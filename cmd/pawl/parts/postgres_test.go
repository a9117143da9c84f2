package parts

import (
	"strings"
	"testing"
)

func TestDescribePostgres(t *testing.T) {
	for rest, want := range map[string]string{
		"//u:geheim@h/d?schema=s":                    "postgres://u:xxxxx@h/d?schema=s",
		"//h/d?user=u&password=geheim":               "postgres://h/d",
		"//h/d?sslkey=k&sslpassword=geheim&schema=s": "postgres://h/d?schema=s",
		"//u:p@geheim/x%zz@h/d":                      "",
	} {
		p, err := parsePostgres(rest, "")
		if got := p.Describe(); err == nil && got != want || err != nil && (want != "" || strings.Contains(err.Error(), "geheim")) {
			t.Errorf("%s: %q, %v: want %q", rest, got, err, want)
		}
	}
}
