package event

import "testing"

// RFC 3339 cannot write a year of five digits, so no ledger could store the row.
func TestYearsOfFiveDigitsAreRejected(t *testing.T) {
	for _, s := range []string{"9999-12-31T23:59:59-23:59", "0000-12-31T23:59:59Z", "0001-01-01T00:00:00+23:59"} {
		if got, err := parseTime(s); err == nil {
			t.Errorf("parseTime(%q) = %v", s, got)
		}
	}
	for _, s := range []string{"9999-12-31T23:59:59Z", "0001-01-01T00:00:01Z"} {
		if _, err := parseTime(s); err != nil {
			t.Error(err)
		}
	}
}
