package bench

import (
	"testing"
	"time"
)

// contender does what the others do, and returns how long it took.
type contender struct {
	name string
	work func(b *testing.B) time.Duration
	took time.Duration
}

// contest lets contenders work by turns on n objects each, and reports their rates.
func contest(b *testing.B, n int, all ...*contender) {
	b.Helper()
	for b.Loop() {
		for _, c := range all {
			c.took += c.work(b)
		}
	}
	for _, c := range all {
		b.ReportMetric(float64(b.N*n)/c.took.Seconds(), c.name+"/s")
	}
	b.ReportMetric(0, "ns/op")
}

// over reports how many times as fast as another the contender is.
func (c *contender) over(b *testing.B, other *contender) {
	b.Helper()
	b.ReportMetric(other.took.Seconds()/c.took.Seconds(), c.name+"/"+other.name)
}
