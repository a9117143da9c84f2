package pawl

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
)

func TestDefaults(t *testing.T) {
	ignore := cmpopts.IgnoreFields(Config{}, "Logger")
	var got Config
	got.setDefaults()
	want := Config{
		Lease:       Lease{TTL: 30 * time.Second, Skew: 5 * time.Second, LateWriteWindow: 15 * time.Minute},
		Retry:       Retry{Attempts: 8, Base: time.Second, Max: 5 * time.Minute, Outage: 24 * time.Hour},
		Concurrency: 16, MaxBacklogEvents: 1000, MaxBytes: 1 << 30, SweepInterval: time.Second, ShutdownTimeout: 20 * time.Second,
		Audit: Audit{SettleWindow: 12 * time.Hour, RowRetention: 720 * time.Hour, MaxDelay: 24 * time.Hour},
	}
	if d := cmp.Diff(want, got, ignore); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if got.Logger != slog.Default() {
		t.Error("the logger is another than slog.Default")
	}

	logger := slog.New(slog.DiscardHandler)
	own := Config{
		Lease:       Lease{TTL: 2 * time.Second, Skew: 3 * time.Second, LateWriteWindow: 4 * time.Second},
		Retry:       Retry{Attempts: 5, Base: 6 * time.Second, Max: 7 * time.Second, Outage: 17 * time.Second},
		Concurrency: 8, MaxBacklogEvents: 9, MaxBytes: 10, SweepInterval: 11 * time.Second, ShutdownTimeout: 12 * time.Second, Logger: logger,
		Audit: Audit{Every: 13 * time.Second, SettleWindow: 14 * time.Second, RowRetention: 15 * time.Second, MaxDelay: 16 * time.Second},
	}
	got = own
	got.setDefaults()
	if d := cmp.Diff(own, got, ignore); d != "" || got.Logger != logger {
		t.Errorf("a configured value changed (-want +got):\n%s", d)
	}

	slow := Config{Retry: Retry{Base: time.Hour}}
	if slow.setDefaults(); slow.Retry.Max != time.Hour {
		t.Errorf("the longest back-off is %s, with a first one of an hour", slow.Retry.Max)
	}
}

func TestPolicy(t *testing.T) {
	var c Config
	c.setDefaults()
	if d := cmp.Diff(ledger.DefaultPolicy(), c.policy()); d != "" {
		t.Errorf("the defaults are not the ledger's (-want +got):\n%s", d)
	}
	c.Lease, c.Retry, c.Audit = Lease{TTL: 1, Skew: 2, LateWriteWindow: 3}, Retry{Attempts: 4, Base: 5, Max: 6}, Audit{RowRetention: 7}
	want := ledger.Policy{TTL: 1, Skew: 2, LateWriteWindow: 3, Attempts: 4, Base: 5, Max: 6, RowRetention: 7}
	if d := cmp.Diff(want, c.policy()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestMatch(t *testing.T) {
	pictures := Match{Bucket: "photos", Prefix: "in/", Suffix: []string{".jpg", ".png"}}
	for _, c := range []struct {
		match       Match
		bucket, key string
		want        bool
	}{
		{pictures, "photos", "in/a.jpg", true},
		{pictures, "photos", "in/a/b.png", true},
		{pictures, "photos", "in/.jpg", true},
		{pictures, "photos", "in/a.JPG", false},
		{pictures, "photos", "in/a.gif", false},
		{pictures, "photos", "in", false},
		{pictures, "photos", "other/in/a.jpg", false},
		{pictures, "photos2", "in/a.jpg", false},
		{Match{Bucket: "photos"}, "photos", "anything\n\xff", true},
		{Match{Bucket: "photos"}, "other", "anything", false},
	} {
		if got := c.match.match(event.Object{Bucket: c.bucket, Key: c.key}); got != c.want {
			t.Errorf("%+v of %s/%q: %v, want %v", c.match, c.bucket, c.key, got, c.want)
		}
	}
}

func TestOutputKey(t *testing.T) {
	for _, c := range []struct {
		prefix       string
		to           Output
		each         bool
		key, version string
		want         string
	}{
		{"", Output{}, false, "a.jpg", "", "a.jpg"},
		{"in/", Output{Prefix: "gray/"}, false, "in/2026/a.jpg", "", "gray/2026/a.jpg"},
		{"in/", Output{Prefix: "gray/"}, false, "in/in/a.jpg", "", "gray/in/a.jpg"},
		{"in/", Output{Suffix: ".webp"}, false, "in/a.jpg", "", "a.jpg.webp"},
		{"in/", Output{Prefix: "gray/"}, false, "in/a b+%2B\xff\n", "", "gray/a b+%2B\xff\n"},
		{"in/", Output{Prefix: "gray/", Suffix: ".x"}, true, "in/a@v1", "v2", "gray/a@v1@v2.x"},
		{"in/", Output{Prefix: "gray/"}, true, "in/a", "", "gray/a@"},
	} {
		p := Pipeline{Match: Match{Bucket: "in", Prefix: c.prefix}, To: &c.to, EachVersion: c.each}
		if got := p.OutputOf(ledger.RowKey{Bucket: "in", Key: c.key, VersionID: c.version}); got.Key != c.want {
			t.Errorf("the output of %q is %q, want %q", c.key, got.Key, c.want)
		}
	}
}

// Few letters make the texts collide.
func name(letters string) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		return string(rapid.SliceOfN(rapid.SampledFrom([]byte(letters)), 0, 5).Draw(t, "letters"))
	})
}

func drawPipeline(t *rapid.T, label string) Pipeline {
	buckets := rapid.SampledFrom([]string{"x", "y"})
	return Pipeline{
		Name:  label,
		Match: Match{Bucket: buckets.Draw(t, label+" input bucket"), Prefix: name("a/").Draw(t, label+" input prefix")},
		To: &Output{
			Bucket: buckets.Draw(t, label+" output bucket"),
			Prefix: name("a/").Draw(t, label+" output prefix"), Suffix: name("a@.").Draw(t, label+" suffix"),
		},
		EachVersion: rapid.Bool().Draw(t, label+" each version"),
	}
}

func drawInput(t *rapid.T, p *Pipeline, label string) ledger.RowKey {
	k := ledger.RowKey{Pipeline: p.Name, Bucket: p.Match.Bucket, Key: p.Match.Prefix + name("a@/.\xff").Draw(t, label)}
	if p.EachVersion {
		k.VersionID = name("a.").Draw(t, label+" version")
	}
	return k
}

func TestDifferentInputsHaveDifferentOutputs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPipeline(t, "p")
		a, b := drawInput(t, &p, "first"), drawInput(t, &p, "second")
		at, bt := p.OutputOf(a), p.OutputOf(b)
		if (at == bt) != (a == b) {
			t.Fatalf("%q goes to %q, %q to %q", a, at, b, bt)
		}
		if at.Bucket != p.To.Bucket || at.VersionID != "" || !strings.HasPrefix(at.Key, p.To.Prefix) || !strings.HasSuffix(at.Key, p.To.Suffix) {
			t.Fatalf("%q goes to %q: neither below %q nor with %q", a, at, p.To.Prefix, p.To.Suffix)
		}
		rest := strings.TrimPrefix(a.Key, p.Match.Prefix)
		if !strings.Contains(at.Key, rest) {
			t.Fatalf("%q goes to %q: without %q", a, at, rest)
		}
	})
}

func TestAcceptedPipelinesNeverShareOutputs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ps := []Pipeline{drawPipeline(t, "p"), drawPipeline(t, "q"), drawPipeline(t, "r")}
		if findCycle(ps) != nil || len(sharedOutputs(ps)) > 0 {
			return
		}
		outputs := map[string]string{}
		for start := range ps {
			object := drawInput(t, &ps[start], "input")
			at := start
			for step := range len(ps) + 1 {
				out := ps[at].OutputOf(object)
				name := out.Bucket + "/" + out.Key
				if by, ok := outputs[name]; ok && by != ps[at].Name {
					t.Fatalf("%s and %s write %q", by, ps[at].Name, name)
				}
				outputs[name] = ps[at].Name
				next := -1
				for i := range ps {
					if ps[i].Match.match(event.Object{Bucket: out.Bucket, Key: out.Key}) {
						next = i
					}
				}
				if next < 0 {
					break
				}
				if step == len(ps) {
					t.Fatalf("the output of %s returns to its own pipeline", ps[start].Name)
				}
				at, object = next, ledger.RowKey{Bucket: out.Bucket, Key: out.Key}
			}
		}
	})
}

func TestMatchesOverlap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(label string) Match {
			return Match{
				Bucket: rapid.SampledFrom([]string{"x", "y"}).Draw(t, label+" bucket"), Prefix: name("a/").Draw(t, label+" prefix"),
				Suffix: rapid.SliceOfN(name("ab"), 0, 2).Draw(t, label+" suffixes"),
			}
		}
		p, q := draw("p"), draw("q")
		both := func(key string) bool {
			o := event.Object{Bucket: p.Bucket, Key: key}
			return p.match(o) && q.match(o)
		}
		found := both(name("a/b").Draw(t, "key"))
		for _, prefix := range []string{p.Prefix, q.Prefix} {
			for _, suffix := range append(append([]string{""}, p.Suffix...), q.Suffix...) {
				found = found || both(prefix+suffix)
			}
		}
		if found != p.overlaps(&q) {
			t.Fatalf("%+v and %+v: overlaps is %v", p, q, !found)
		}
	})
}
