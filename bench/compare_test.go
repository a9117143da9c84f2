package bench

import (
	"testing"
	"time"
)

type competitor struct {
	name    string
	work    func(b *testing.B) time.Duration
	elapsed time.Duration
}

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

func (c *competitor) reportRatio(b *testing.B, other *competitor) {
	b.Helper()
	b.ReportMetric(other.elapsed.Seconds()/c.elapsed.Seconds(), c.name+"/"+other.name)
}
