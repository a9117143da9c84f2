package traffic

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/pawlhq/pawl/event"
)

var start = time.Date(2019, time.May, 1, 0, 0, 0, 0, time.UTC)

type statistics struct {
	first, last         time.Time // arrivals
	notifications, keys int
	twice, thrice       int
	least, most         time.Duration // between a notification and its repetition
	soon                int           // repetitions within 15 s
	lost, overtaken     int
}

func measure(t *testing.T, traffic *Traffic) (f statistics) {
	t.Helper()
	seen, firsts := make([]uint8, traffic.Shape.Objects()), map[int]time.Time{}
	newest := 0
	for n := range traffic.Notifications() {
		if f.notifications == 0 {
			f.first = n.Arrives
		}
		if n.Arrives.Before(f.last) || n.Arrives.Before(n.Created) {
			t.Fatalf("%s arrives at %s, after %s", n.Key(), n.Arrives, f.last)
		}
		f.last = n.Arrives
		f.notifications++
		seen[n.Number]++
		if n.Number < newest {
			f.overtaken++
		}
		newest = max(newest, n.Number)
		if n.Copies == 1 {
			continue
		}
		if n.Copy == 0 {
			firsts[n.Number] = n.Arrives
			continue
		}
		gap := n.Arrives.Sub(firsts[n.Number])
		if f.least == 0 || gap < f.least {
			f.least = gap
		}
		f.most = max(f.most, gap)
		if gap <= 15*time.Second {
			f.soon++
		}
	}
	for _, times := range seen {
		switch times {
		case 0:
			f.lost++
		case 2:
			f.twice++
		case 3:
			f.thrice++
		}
	}
	f.keys = len(seen) - f.lost
	return f
}

func TestPublishedStatistics(t *testing.T) {
	f := measure(t, New(Published, "inputs", start, 1))
	var b bytes.Buffer
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\tpublished\there")
	for _, row := range []struct{ what, published, here string }{
		{"hours", "104", fmt.Sprintf("%.1f", f.last.Sub(start).Hours())},
		{"notifications", "507706", fmt.Sprint(f.notifications)},
		{"keys", "507549", fmt.Sprint(f.keys)},
		{"keys notified again", "154", fmt.Sprint(f.twice + f.thrice)},
		{"of them three times", "some", fmt.Sprint(f.thrice)},
		{"shortest interval", "62 ms", fmt.Sprintf("%d ms", f.least.Milliseconds())},
		{"longest interval", "22162 s", fmt.Sprintf("%.0f s", f.most.Seconds())},
		{"within 15 s", "often", fmt.Sprintf("%d of %d", f.soon, f.twice+2*f.thrice)},
		{"lost", "not known", fmt.Sprint(f.lost)},
		{"overtaken by a newer one", "not said", fmt.Sprint(f.overtaken)},
	} {
		fmt.Fprintf(w, "%s\t%s\t%s\n", row.what, row.published, row.here)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	t.Logf("\n%s", b.String())
	got := statistics{
		notifications: f.notifications, keys: f.keys, twice: f.twice, thrice: f.thrice, least: f.least, most: f.most, lost: f.lost,
	}
	want := statistics{
		notifications: 507_706, keys: 507_549, twice: 151, thrice: 3, least: 62 * time.Millisecond, most: 22_162 * time.Second, lost: 507,
	}
	if got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if hours := f.last.Sub(start); hours > Published.Span || f.soon < 70 || f.overtaken < 1000 {
		t.Errorf("%s, %d repetitions within 15 s, %d overtaken", hours, f.soon, f.overtaken)
	}
}

func TestSeeds(t *testing.T) {
	small := Published.Divided(1000)
	texts := func(seed uint64) (all []string) {
		for n := range New(small, "inputs", start, seed).Notifications() {
			all = append(all, n.Text())
		}
		return all
	}
	one := texts(1)
	if !slices.Equal(one, texts(1)) || slices.Equal(one, texts(2)) {
		t.Error("a seed does not determine the traffic")
	}
	if f := measure(t, New(small, "inputs", start, 3)); f.notifications != small.Notifications() || f.lost != small.Lost || f.keys != small.Keys {
		t.Errorf("%+v, want %+v", f, small)
	}
}

func TestText(t *testing.T) {
	traffic := New(Published.Divided(500), "inputs", start, 4)
	ids := map[int]string{}
	for n := range traffic.Notifications() {
		text := n.Text()
		batch, err := event.Parse([]byte(text), event.Detect)
		if err != nil || len(batch.Events) != 1 || batch.Dialect != event.AWS {
			t.Fatalf("%s: %+v, %v", text, batch, err)
		}
		e := batch.Events[0]
		want := event.Object{Bucket: "inputs", Key: n.Key()}
		if e.Object != want || e.Kind != event.Created || e.ETag != n.ETag() || e.Size != int64(len(n.Content())) || !e.Time.Equal(n.Created.Truncate(time.Millisecond)) {
			t.Errorf("%+v of %+v", e, n)
		}
		var raw struct {
			Records []struct{ ResponseElements map[string]string }
		}
		if err := json.NewDecoder(strings.NewReader(text)).Decode(&raw); err != nil {
			t.Fatal(err)
		}
		id := raw.Records[0].ResponseElements["x-amz-id-2"]
		if n.Copy > 0 && id != ids[n.Number] || id == "" {
			t.Errorf("copy %d of %s has the x-amz-id-2 %q, the first %q", n.Copy, n.Key(), id, ids[n.Number])
		}
		ids[n.Number] = id
	}
	distinct := slices.Compact(slices.Sorted(func(yield func(string) bool) {
		for _, id := range ids {
			if !yield(id) {
				return
			}
		}
	}))
	if len(distinct) != traffic.Keys {
		t.Errorf("%d of %d objects have an x-amz-id-2 of their own", len(distinct), traffic.Keys)
	}
}
