package bench

import (
	"testing"
	"time"
)

// competitor is one implementation of the measured work. work returns its duration.
type competitor struct {
	name    string
	work    func(b *testing.B) time.Duration
	elapsed time.Duration
}

// compare runs the competitors in turn on n objects each, and reports their rates.
func compare(b *testing.B, n int, all ...*competitor) {
	b.Helper()
	for b.Loop() {
		for _, c := range all {
			c.elapsed += c.work(b)
		}
	}
	for _, c := range all {
		b.ReportMetric(float64(b.N*n)/c.elapsed.Seconds(), c.name+"/s")
	}
	b.ReportMetric(0, "ns/op")
}

// reportRatio reports the ratio of the competitor's speed to that of another.
func (c *competitor) reportRatio(b *testing.B, other *competitor) {
	b.Helper()
	b.ReportMetric(other.elapsed.Seconds()/c.elapsed.Seconds(), c.name+"/"+other.name)
}
