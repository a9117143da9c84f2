package notificationstats

import (
	"context"
	"math"

	"github.com/pawlhq/pawl/internal/extsort"
)

// Seconds is a duration in seconds, exact to the microsecond.
type Seconds float64

func seconds(micros int64) Seconds { return Seconds(float64(micros) / 1e6) }

// Distribution describes durations. A percentile is the smallest duration that is not exceeded by
// this percentage of all durations.
type Distribution struct {
	Count     int64   `json:"count"`
	Min       Seconds `json:"min_seconds"`
	P50       Seconds `json:"p50_seconds"`
	P90       Seconds `json:"p90_seconds"`
	P99       Seconds `json:"p99_seconds"`
	Max       Seconds `json:"max_seconds"`
	Histogram []Bin   `json:"histogram"` // in ascending order, without empty bins
}

// Bin is the number of durations that are at least From and less than To. The first bin also has
// shorter durations, and the last bin longer ones.
type Bin struct {
	From  Seconds `json:"from_seconds"`
	To    Seconds `json:"to_seconds"`
	Count int64   `json:"count"`
}

const (
	binsPerDecade = 5
	firstEdge     = 1000 // microseconds
	decades       = 11   // up to 3 years
)

// edge returns the start of a bin in microseconds.
func edge(bin int) int64 {
	return int64(math.Round(firstEdge * math.Pow(10, float64(bin)/binsPerDecade)))
}

// newDistribution reads durations in microseconds. It returns nil if there are none.
func newDistribution(ctx context.Context, s *extsort.Sorter) (*Distribution, error) {
	n := s.Len()
	if n == 0 {
		return nil, nil
	}
	d := &Distribution{Count: n}
	ranks := map[*Seconds]int64{&d.Min: 1, &d.P50: (n*50 + 99) / 100, &d.P90: (n*90 + 99) / 100, &d.P99: (n*99 + 99) / 100, &d.Max: n}
	i, bin, started := int64(0), 0, false
	return d, s.Each(ctx, func(b []byte) error {
		v := micros(b)
		i++
		for to, rank := range ranks {
			if i == rank {
				*to = seconds(v)
			}
		}
		for bin < decades*binsPerDecade-1 && v >= edge(bin+1) {
			bin, started = bin+1, false
		}
		if !started {
			d.Histogram = append(d.Histogram, Bin{From: seconds(edge(bin)), To: seconds(edge(bin + 1))})
			started = true
		}
		d.Histogram[len(d.Histogram)-1].Count++
		return nil
	})
}
