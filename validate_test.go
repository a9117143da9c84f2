package pawl_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/bucket/membucket"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/source"
	"github.com/pawlhq/pawl/store/memory"
)

type silent struct{}

func (silent) Run(context.Context, source.Sink) error { return nil }

type declared struct {
	silent
	dialect event.Dialect
	trust   bool
}

func (d declared) Declares() (event.Dialect, bool) { return d.dialect, d.trust }

func flow(name, from, to string) pawl.Pipeline {
	p := pawl.Pipeline{Name: name, Handler: pawl.HandlerFunc(upper)}
	p.Match.Bucket, p.Match.Prefix, _ = strings.Cut(from, "/")
	if to != "" {
		p.To = &pawl.Output{}
		p.To.Bucket, p.To.Prefix, _ = strings.Cut(to, "/")
	}
	return p
}

func valid() pawl.Config {
	return pawl.Config{
		Ledger: memory.New(), Objects: membucket.New(time.Now, nil),
		Pipelines: []pawl.Pipeline{flow("up", "photos/in/", "photos/out/")},
	}
}

func neverSweeps(c *pawl.Config) { c.NoSweep, c.Sources = true, []pawl.Source{silent{}} }

func pipelines(ps ...pawl.Pipeline) func(*pawl.Config) {
	return func(c *pawl.Config) { c.Pipelines = ps }
}

func byEvent(sources ...pawl.Source) func(*pawl.Config) {
	return func(c *pawl.Config) {
		c.Pipelines[0].Order = pawl.EventOrder
		c.Sources = sources
	}
}

func first(change func(p *pawl.Pipeline)) func(*pawl.Config) {
	return func(c *pawl.Config) { change(&c.Pipelines[0]) }
}

type replacer struct {
	pawl.Handler
	target string
}

func (r replacer) Target() string { return r.target }

func replacing(name, from, target string, suffixes ...string) pawl.Pipeline {
	p := flow(name, from, "")
	p.Handler, p.Match.Suffix = replacer{p.Handler, target}, suffixes
	return p
}

const (
	badName   = `: invalid name: want 1 to 64 of a-z, 0-9, '.', '_' and '-'`
	loop      = "): write the output to another bucket or prefix"
	overlap   = " could write the same output: use output prefixes that do not contain each other"
	oneTarget = " can match the same object, and both write to t: match different objects, or write to different targets"
	noDialect = ": configure a trusted dialect, set trust_sequencer if you guarantee the order, or use store order"
)

func TestInvalidConfig(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*pawl.Config)
		says   string
	}{
		{"no ledger", func(c *pawl.Config) { c.Ledger = nil }, "a ledger is required"},
		{"no pipeline", pipelines(), "at least one pipeline is required"},
		{"no name", first(func(p *pawl.Pipeline) { p.Name = "" }), `pipeline ""` + badName},
		{"capitals", first(func(p *pawl.Pipeline) { p.Name = "Up" }), `pipeline Up` + badName},
		{"a space", first(func(p *pawl.Pipeline) { p.Name = "u p" }), `pipeline "u p"` + badName},
		{"a newline", first(func(p *pawl.Pipeline) { p.Name = "up\n" }), `pipeline "up\n"` + badName},
		{"begins with a dot", first(func(p *pawl.Pipeline) { p.Name = ".up" }), `pipeline .up` + badName},
		{"too long", first(func(p *pawl.Pipeline) { p.Name = strings.Repeat("u", 65) }), "pipeline " + strings.Repeat("u", 65) + badName},
		{"the same name", pipelines(flow("up", "a", ""), flow("up", "b", "")), "two pipelines are named up: the name of a pipeline must be unique"},
		{"no handler", first(func(p *pawl.Pipeline) { p.Handler = nil }), "pipeline up: handler is required"},
		{"no input bucket", first(func(p *pawl.Pipeline) { p.Match.Bucket = "" }), "pipeline up: the match has no bucket"},
		{"no output bucket", first(func(p *pawl.Pipeline) { p.To.Bucket = "" }), "pipeline up: the output has no bucket"},
		{"no objects to look at", func(c *pawl.Config) { c.Objects, c.Pipelines[0].To = nil, nil }, "pipeline up: an object store is required"},
		{"no objects to write", func(c *pawl.Config) { c.Objects, c.Pipelines[0].Order = nil, pawl.EventOrder }, "pipeline up: an object store is required"},

		{"output is the input", pipelines(flow("up", "a/x/", "a/x/")), "pipeline up would process its own output (up → up" + loop},
		{"output within the input", pipelines(flow("up", "a/x/", "a/x/y/")), "pipeline up would process its own output (up → up" + loop},
		{"input within the output", pipelines(flow("up", "a/x/y/", "a/x/")), "pipeline up would process its own output (up → up" + loop},
		{"whole bucket", pipelines(flow("up", "a", "a/out/")), "pipeline up would process its own output (up → up" + loop},
		{"prefix without a slash", pipelines(flow("up", "a/in", "a/in-out/")), "pipeline up would process its own output (up → up" + loop},
		{"cycle of two", pipelines(flow("up", "a", "b"), flow("down", "b", "a")), "pipeline up would process its own output (up → down → up" + loop},
		{"cycle of three, behind another", pipelines(flow("in", "x", "a/in/"), flow("p", "a", "b/p/"), flow("q", "b", "c"), flow("r", "c", "a/r/")),
			"pipeline p would process its own output (p → q → r → p" + loop},
		{"a suffix is no way out", pipelines(pawl.Pipeline{
			Name: "up", Handler: pawl.HandlerFunc(upper), Match: pawl.Match{Bucket: "a", Suffix: []string{".jpg"}},
			To: &pawl.Output{Bucket: "a", Suffix: ".png"},
		}), "pipeline up would process its own output (up → up" + loop},
		{"equal outputs", pipelines(flow("p", "a", "c/x/"), flow("q", "b", "c/x/")), "pipelines p and q" + overlap},
		{"nested outputs", pipelines(flow("p", "a", "c"), flow("q", "b", "c/x/")), "pipelines p and q" + overlap},

		{"one target", pipelines(replacing("p", "a/x", "t", ".csv"), replacing("q", "a/x/y", "t")), "pipelines p and q" + oneTarget},
		{"one target, suffixes that meet", pipelines(replacing("p", "a", "t", ".txt", ".csv"), replacing("q", "a", "t", "x.csv")), "pipelines p and q" + oneTarget},
		{"a target for versions", func(c *pawl.Config) { pipelines(replacing("p", "a", "t"))(c); c.Pipelines[0].EachVersion = true },
			"pipeline p: versions of an object have no order (identity: version), so an older version could replace a newer one in t: use identity: object"},

		{"acknowledged too early", func(c *pawl.Config) { c.Ledger = durable{c.Ledger}; neverSweeps(c) },
			"NoSweep needs AckSettled: without sweeps, only the message starts the next attempt"},
		{"sweeps and does not", func(c *pawl.Config) { c.SweepInterval = time.Second; neverSweeps(c) },
			"sweep_interval is 1s, and NoSweep is set: set only one of them"},
		{"nothing to do", func(c *pawl.Config) { c.NoSweep = true }, "NoSweep needs a source"},

		{"audits too often", func(c *pawl.Config) { c.Audit.Every = time.Millisecond }, "the interval of audits is 1ms: at least 1s"},
		{"settle", func(c *pawl.Config) { c.Audit.SettleWindow = -1 }, "audit.settle_window is -1ns: at least 0s"},
		{"max delay", func(c *pawl.Config) { c.Audit.MaxDelay = -1 }, "audit.max_delay is -1ns: at least 0s"},
		{"forgets before it settles", func(c *pawl.Config) { c.Audit = pawl.Audit{SettleWindow: 48 * time.Hour, RowRetention: 48 * time.Hour} },
			"audit.row_retention is 48h0m0s: it must exceed audit.settle_window and audit.max_delay, here 48h0m0s, because a late event must find the row of the removal"},
		{"forgets before all have come", func(c *pawl.Config) { c.Audit.RowRetention = time.Hour },
			"audit.row_retention is 1h0m0s: it must exceed audit.settle_window and audit.max_delay, here 24h0m0s, because a late event must find the row of the removal"},
		{"audits and never sweeps", func(c *pawl.Config) { c.Audit.Every = time.Hour; neverSweeps(c) },
			"scheduled audits need sweeps: the objects that an audit finds have no message that starts an attempt"},
		{"audits ahead of events", func(c *pawl.Config) {
			byEvent(declared{dialect: event.AWS})(c)
			c.Audit = pawl.Audit{Every: time.Hour, SettleWindow: 12 * time.Hour, MaxDelay: 12 * time.Hour}
		}, "pipeline up is in event order, so an audit must ignore changes whose notification may still arrive: audit.settle_window is 12h0m0s, want more than audit.max_delay, 12h0m0s"},

		{"event order without a dialect", byEvent(silent{}), "pipeline up: event order needs sources that declare their dialect"},
		{"event order of any dialect", byEvent(declared{dialect: event.Detect, trust: true}),
			`pipeline up: event order needs a dialect with trusted sequencers, and a source has ""` + noDialect},
		{"event order of an untrusted dialect", byEvent(declared{dialect: event.AWS}, declared{dialect: event.MinIO}),
			`pipeline up: event order needs a dialect with trusted sequencers, and a source has "minio"` + noDialect},

		{"ttl", func(c *pawl.Config) { c.Lease.TTL = time.Second - 1 }, "lease.ttl is 999.999999ms: at least 1s"},
		{"skew", func(c *pawl.Config) { c.Lease.Skew = -1 }, "lease.skew is -1ns: at least 0s"},
		{"horizon", func(c *pawl.Config) { c.Lease.LateWriteWindow = -1 }, "lease.late_write_window is -1ns: at least 0s"},
		{"base", func(c *pawl.Config) { c.Retry.Base = 1 }, "the first back-off is 1ns: at least 1ms"},
		{"max", func(c *pawl.Config) { c.Retry.Base, c.Retry.Max = time.Hour, time.Minute }, "the longest back-off is 1m0s: at least 1h0m0s"},
		{"sweep", func(c *pawl.Config) { c.SweepInterval = time.Millisecond }, "sweep_interval is 1ms: at least 10ms"},
		{"grace", func(c *pawl.Config) { c.ShutdownTimeout = -time.Second }, "shutdown_timeout is -1s: at least 0s"},
		{"attempts", func(c *pawl.Config) { c.Retry.Attempts = -1 }, "the number of attempts is -1: at least 1"},
		{"concurrency", func(c *pawl.Config) { c.Concurrency = -1 }, "the concurrency is -1: at least 1"},
		{"backlog", func(c *pawl.Config) { c.MaxBacklogEvents = -1 }, "max_backlog_events is -1: at least 1"},
		{"max bytes", func(c *pawl.Config) { c.MaxBytes = -1 }, "the maximum number of bytes is -1: at least 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := valid()
			c.change(&cfg)
			_, err := pawl.New(cfg)
			if !errors.Is(err, pawl.ErrConfig) {
				t.Fatalf("answered %v, want ErrConfig", err)
			}
			if want := "invalid configuration: " + c.says; err.Error() != want {
				t.Errorf("it says\n%s\nwant\n%s", err, want)
			}
		})
	}
}

func TestInvalidConfigListsEveryProblem(t *testing.T) {
	_, err := pawl.New(pawl.Config{Pipelines: []pawl.Pipeline{{Name: "X"}, {Name: "up"}}, SweepInterval: 1})
	for _, want := range []string{"a ledger is required", "pipeline X: invalid name", "pipeline up: handler is required", "sweep_interval"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: nothing of %q", err, want)
		}
	}
}

func TestValidConfig(t *testing.T) {
	for name, change := range map[string]func(*pawl.Config){
		"audits in event order by default": func(c *pawl.Config) {
			byEvent(declared{dialect: event.AWS})(c)
			c.Audit.Every = time.Hour
		},
		"the simplest":             func(*pawl.Config) {},
		"a name of 64":             first(func(p *pawl.Pipeline) { p.Name = "0" + strings.Repeat("._-", 21) }),
		"another bucket":           pipelines(flow("up", "a", "b")),
		"a chain":                  pipelines(flow("p", "a", "b/p/"), flow("q", "b/p/", "b/q/"), flow("r", "b/q/", "c")),
		"two ways to one bucket":   pipelines(flow("p", "a", "c/p/"), flow("q", "b", "c/q/")),
		"two of one input":         pipelines(flow("p", "a", "c/p/"), flow("q", "a", "")),
		"one target, two prefixes": pipelines(replacing("p", "a/x/", "t"), replacing("q", "a/y/", "t")),
		"one target, two suffixes": pipelines(replacing("p", "a", "t", ".csv"), replacing("q", "a", "t", ".json")),
		"one target, two buckets":  pipelines(replacing("p", "a", "t"), replacing("q", "b", "t")),
		"two targets":              pipelines(replacing("p", "a", "t"), replacing("q", "a", "u")),
		"prefixes that look alike": pipelines(flow("up", "a/in/", "a/in-out/")),
		"event order":              byEvent(declared{dialect: event.AWS}),
		"event order, vouched for": byEvent(declared{dialect: event.MinIO, trust: true}),
		"event order, no source":   byEvent(),
		"never sweeping":           func(c *pawl.Config) { c.Ledger, c.Ack = durable{c.Ledger}, pawl.AckSettled; neverSweeps(c) },
		"never sweeping, forgets":  neverSweeps,
		"event order, no objects": func(c *pawl.Config) {
			c.Objects, c.Pipelines[0].To, c.Pipelines[0].Order = nil, nil, pawl.EventOrder
		},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := valid()
			change(&cfg)
			if _, err := pawl.New(cfg); err != nil {
				t.Error(err)
			}
		})
	}
}
