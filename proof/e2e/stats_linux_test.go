package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/pawlhq/pawl/cmd/pawl/notificationstats"
	"github.com/pawlhq/pawl/internal/traffic"
	"github.com/pawlhq/pawl/proof/servertest"
)

var (
	statsNotifications = flag.Int("statsnotifications", traffic.Published.Notifications(), "notifications that TestStats measures")
	statsSeed          = flag.Uint64("statsseed", 1, "seed of these notifications")
)

const statsMB = 200 // the promised maximum of memory

func newDistribution(micros []int64) *notificationstats.Distribution {
	slices.Sort(micros)
	at := func(percent int) notificationstats.Seconds {
		return notificationstats.Seconds(float64(micros[max(0, (len(micros)*percent+99)/100-1)]) / 1e6)
	}
	return &notificationstats.Distribution{Count: int64(len(micros)), Min: at(0), P50: at(50), P90: at(90), P99: at(99), Max: at(100)}
}

// TestStats compares the report of pawl stats with the figures of the notifications that it reads. By
// default these are as many, and as often repeated, as the published ones.
func TestStats(t *testing.T) {
	servertest.Long(t)
	shape, total := traffic.Published, traffic.Published.Notifications()
	n := *statsNotifications
	shape.Twice, shape.Thrice = max(1, shape.Twice*n/total), max(1, shape.Thrice*n/total)
	shape.Keys = n - shape.Twice - 2*shape.Thrice
	cmd := exec.CommandContext(t.Context(), build(t), "stats", "--json")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	cmd.Stdout = &out
	tr := traffic.New(shape, inputs, time.Date(2019, time.May, 1, 0, 0, 0, 0, time.UTC), *statsSeed)
	var want notificationstats.Report
	generated := make(chan error, 1)
	go func() { generated <- writeCaptures(stdin, tr, &want) }()
	start := time.Now()
	peak := float64(runMeasured(t, cmd)) / 1e6
	if err := <-generated; err != nil {
		t.Fatal(err)
	}
	t.Logf("%d notifications in %.0f s, with their generation; %.0f MB", n, time.Since(start).Seconds(), peak)
	var got notificationstats.Report
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	keys, twice, thrice := int64(shape.Keys), int64(shape.Twice), int64(shape.Thrice)
	want.Notifications, want.Objects, want.Changes, want.Repeated, want.Copies = int64(n), keys, keys, twice+thrice, twice+2*thrice
	want.Deliveries = map[int64]int64{1: keys - twice - thrice, 2: twice, 3: thrice}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(notificationstats.Distribution{}, "Histogram")); diff != "" {
		t.Errorf("the report differs (-want +got):\n%s", diff)
	}
	if i := got.Intervals; float64(i.Min) != shape.MinInterval.Seconds() || float64(i.Max) != shape.MaxInterval.Seconds() {
		t.Errorf("intervals %+v, want %s to %s", i, shape.MinInterval, shape.MaxInterval)
	}
	if peak > statsMB {
		t.Errorf("%.0f MB, want at most %d", peak, statsMB)
	}
}

// writeCaptures writes the notifications with their times of arrival, and sets the times in want.
func writeCaptures(to io.WriteCloser, tr *traffic.Traffic, want *notificationstats.Report) error {
	w := bufio.NewWriter(to)
	first := map[int]int64{} // arrivals, by number of the object
	var intervals, lateness []int64
	for n := range tr.Notifications() {
		arrival := n.Arrives.UnixMicro()
		switch {
		case n.Copy > 0:
			intervals = append(intervals, arrival-first[n.Number])
		case n.Copies > 1:
			first[n.Number] = arrival
			fallthrough
		default:
			lateness = append(lateness, arrival-n.Created.Truncate(time.Millisecond).UnixMicro())
		}
		if _, err := fmt.Fprintf(w, "{\"received_at\":%q,%s\n", n.Arrives.Format(time.RFC3339Nano), n.Text()[1:]); err != nil {
			return err
		}
	}
	want.Intervals, want.Lateness = newDistribution(intervals), newDistribution(lateness)
	return errors.Join(w.Flush(), to.Close())
}
