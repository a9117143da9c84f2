package notificationstats

import (
	"cmp"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/pawlhq/pawl/event"
)

var base = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

type notification struct {
	event.Event
	received time.Time
}

func drawNotification(t *rapid.T) (n notification) {
	n.Dialect = rapid.SampledFrom([]event.Dialect{event.AWS, event.MinIO, event.R2}).Draw(t, "dialect")
	n.Object = event.Object{Bucket: "b", Key: rapid.SampledFrom([]string{"a", "a/", "\xff"}).Draw(t, "key"), VersionID: rapid.SampledFrom([]string{"", "v"}).Draw(t, "version")}
	n.Kind = rapid.SampledFrom([]event.Kind{event.Created, event.Removed}).Draw(t, "kind")
	if n.Dialect != event.R2 {
		raw := rapid.SampledFrom([]string{"0", "1", "10", "00", "01", "0001", "000000000000000001", "ff", "FFF", "ff00ff", "ff0001"}).Draw(t, "sequencer")
		n.Sequencer, _ = event.ParseSequencer(raw)
	}
	if second := rapid.IntRange(-1, 2).Draw(t, "second"); second >= 0 {
		n.Time = base.Add(time.Duration(second) * time.Second)
	}
	if arrival := rapid.IntRange(-1, 5000).Draw(t, "arrival"); arrival >= 0 {
		n.received = base.Add(time.Duration(arrival) * time.Millisecond)
	}
	n.ETag = rapid.SampledFrom([]string{"", "e"}).Draw(t, "etag")
	return n
}

// sameChange reports whether two notifications are copies.
func sameChange(a, b *notification) bool {
	if a.Object != b.Object || a.Kind != b.Kind || a.Dialect.TrustsSequencer() != b.Dialect.TrustsSequencer() || a.Sequencer.CompareSameKey(b.Sequencer) != 0 {
		return false
	}
	return a.Dialect.TrustsSequencer() || a.Time.Equal(b.Time) && a.ETag == b.ETag
}

// newer reports whether the change of a is newer than that of b.
func newer(a, b *notification) bool {
	if a.Object.Key != b.Object.Key || a.Dialect.TrustsSequencer() != b.Dialect.TrustsSequencer() {
		return false
	}
	if a.Dialect.TrustsSequencer() {
		return a.Sequencer.CompareSameKey(b.Sequencer) > 0
	}
	return !b.Time.IsZero() && a.Time.After(b.Time)
}

// model computes the report with all notifications in memory.
func model(all []*notification) *Report {
	r := &Report{Notifications: int64(len(all)), Deliveries: map[int64]int64{}}
	order, last := map[*notification]time.Time{}, time.Time{}
	for _, n := range all {
		if n.received.IsZero() {
			r.WithoutReceivedAt++
		} else {
			last = n.received
		}
		order[n] = last
	}
	slices.SortStableFunc(all, func(a, b *notification) int { return order[a].Compare(order[b]) })
	objects := map[string]bool{}
	copies := map[*notification]int64{} // by first notification
	var intervals, lateness []time.Duration
	for i, n := range all {
		objects[n.Object.Key] = true
		if slices.ContainsFunc(all[:i], func(b *notification) bool { return newer(b, n) }) {
			r.OutOfOrder++
		}
		first := all[slices.IndexFunc(all, func(b *notification) bool { return sameChange(b, n) })]
		copies[first]++
		switch {
		case n != first && !n.received.IsZero() && !first.received.IsZero():
			intervals = append(intervals, n.received.Sub(first.received))
		case n == first && !n.received.IsZero() && !n.Time.IsZero():
			lateness = append(lateness, n.received.Sub(n.Time))
		}
	}
	r.Objects, r.Changes = int64(len(objects)), int64(len(copies))
	for _, n := range copies {
		r.Deliveries[n]++
		r.Copies += n - 1
		if n > 1 {
			r.Repeated++
		}
	}
	r.Intervals, r.Lateness = distribution(intervals), distribution(lateness)
	return r
}

func distribution(all []time.Duration) *Distribution {
	if len(all) == 0 {
		return nil
	}
	slices.Sort(all)
	// percentile returns the smallest duration d for which at least percent % of all durations are at
	// most d.
	percentile := func(percent int) Seconds {
		i := slices.IndexFunc(all, func(d time.Duration) bool {
			within, _ := slices.BinarySearchFunc(all, d, func(x, d time.Duration) int { return cmp.Or(cmp.Compare(x, d), -1) })
			return within*100 >= percent*len(all)
		})
		return seconds(all[i].Microseconds())
	}
	return &Distribution{
		Count: int64(len(all)), Min: seconds(all[0].Microseconds()), P50: percentile(50), P90: percentile(90), P99: percentile(99), Max: seconds(all[len(all)-1].Microseconds()),
	}
}

// TestReportEqualsModel compares the report with a computation in memory. Small runs make it merge.
func TestReportEqualsModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := &Collector{}
		c.records.Room = rapid.SampledFrom([]int{0, 500}).Draw(t, "room")
		defer c.Close()
		var all []*notification
		for range rapid.IntRange(0, 40).Draw(t, "notifications") {
			n := drawNotification(t)
			all = append(all, &n)
			if err := c.Add(&n.Event, n.received); err != nil {
				t.Fatal(err)
			}
		}
		got, err := c.Report(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if diff := gocmp.Diff(model(all), got, cmpopts.IgnoreFields(Distribution{}, "Histogram")); diff != "" {
			t.Fatal(diff)
		}
		for _, d := range []*Distribution{got.Intervals, got.Lateness} {
			checkHistogram(t, d)
		}
	})
}

func checkHistogram(t *rapid.T, d *Distribution) {
	if d == nil {
		return
	}
	var sum int64
	for i, bin := range d.Histogram {
		sum += bin.Count
		if bin.Count == 0 || bin.From >= bin.To || i > 0 && bin.From < d.Histogram[i-1].To {
			t.Errorf("bin %d of %+v", i, d.Histogram)
		}
	}
	if last := d.Histogram[len(d.Histogram)-1]; sum != d.Count || last.To <= d.Max || last.From > max(d.Max, 0.001) {
		t.Errorf("%d durations in %+v", d.Count, d.Histogram)
	}
}
