package pawl

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/source"
)

// ErrConfig is returned for an invalid Config. The wrapping error lists every problem.
var ErrConfig = errors.New("invalid configuration")

var pipelineName = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`)

func (c *Config) validate() error {
	var errs []error
	refuse := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if c.Ledger == nil {
		refuse("a ledger is required")
	}
	if len(c.Pipelines) == 0 {
		refuse("at least one pipeline is required")
	}
	seen := map[string]bool{}
	for i := range c.Pipelines {
		p := &c.Pipelines[i]
		if seen[p.Name] {
			refuse("two pipelines are named %s: the name of a pipeline must be unique", event.Quote(p.Name))
		}
		seen[p.Name] = true
		if err := c.validatePipeline(p); err != nil {
			refuse("pipeline %s: %w", event.Quote(p.Name), err)
		}
	}
	errs = append(errs, c.validateBounds()...)
	errs = append(errs, c.validateSweep()...)
	if left := time.Until(c.Deadline); !c.Deadline.IsZero() && left < minInvocation {
		refuse("the deadline is in %s: at least %s are needed to process an object and store the result (AWS Lambda: raise the function's timeout)", left.Round(time.Millisecond), minInvocation)
	}
	errs = append(errs, c.validateAudit()...)
	errs = append(errs, sharedOutputs(c.Pipelines)...)
	errs = append(errs, sharedTargets(c.Pipelines)...)
	if cycle := findCycle(c.Pipelines); cycle != nil {
		refuse("pipeline %s would process its own output (%s): write the output to another bucket or prefix",
			event.Quote(cycle[0]), strings.Join(cycle, " → "))
	}
	if len(errs) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrConfig, errors.Join(errs...))
}

func (c *Config) validatePipeline(p *Pipeline) error {
	switch {
	case !pipelineName.MatchString(p.Name):
		return errors.New("invalid name: want 1 to 64 of a-z, 0-9, '.', '_' and '-'")
	case p.Handler == nil:
		return errors.New("handler is required")
	case p.Concurrency < 0:
		return fmt.Errorf("concurrency is %d: want at least 1, or 0 to share slots with other pipelines", p.Concurrency)
	case p.Match.Bucket == "":
		return errors.New("the match has no bucket")
	case p.Transactional && p.To != nil:
		return errors.New("a transactional pipeline cannot have an output")
	case p.Transactional && c.Ledger != nil && !c.Ledger.Traits().Transactions:
		return errors.New("a transactional pipeline needs a ledger in SQLite or PostgreSQL")
	case p.To != nil && p.To.Bucket == "":
		return errors.New("the output has no bucket")
	case c.Objects == nil && (p.To != nil || p.Order == StoreOrder):
		return errors.New("an object store is required")
	case p.EachVersion && p.target() != "":
		return fmt.Errorf("versions of an object have no order (identity: version), so an older version could replace a newer one in %s: use identity: object", p.target())
	case p.Order != EventOrder:
		return nil
	}
	return c.validateEventOrder()
}

func (c *Config) validateEventOrder() error {
	for _, s := range c.Sources {
		d, ok := s.(source.Declarer)
		if !ok {
			return errors.New("event order needs sources that declare their dialect")
		}
		dialect, trust := d.Declares()
		if dialect == event.Detect || !trust && !dialect.TrustsSequencer() {
			return fmt.Errorf("event order needs a dialect with trusted sequencers, and a source has %q: configure a trusted dialect, set trust_sequencer if you guarantee the order, or use store order", dialect)
		}
	}
	return nil
}

func (c *Config) validateBounds() (errs []error) {
	atLeast := func(name string, got, low time.Duration) {
		if got < low {
			errs = append(errs, fmt.Errorf("%s is %s: at least %s", name, got, low))
		}
	}
	atLeast("lease.ttl", c.Lease.TTL, time.Second)
	atLeast("lease.skew", c.Lease.Skew, 0)
	atLeast("lease.late_write_window", c.Lease.LateWriteWindow, 0)
	atLeast("the first back-off", c.Retry.Base, time.Millisecond)
	atLeast("the longest back-off", c.Retry.Max, c.Retry.Base)
	atLeast("the longest outage", c.Retry.Outage, 0)
	atLeast("shutdown_timeout", c.ShutdownTimeout, 0)
	if c.Audit.Every != 0 {
		atLeast("the interval of audits", c.Audit.Every, time.Second)
	}
	atLeast("audit.settle_window", c.Audit.SettleWindow, 0)
	atLeast("audit.max_delay", c.Audit.MaxDelay, 0)
	positive := func(name string, got int64) {
		if got < 1 {
			errs = append(errs, fmt.Errorf("%s is %d: at least 1", name, got))
		}
	}
	positive("the number of attempts", int64(c.Retry.Attempts))
	positive("the concurrency", int64(c.Concurrency))
	positive("max_backlog_events", int64(c.MaxBacklogEvents))
	positive("the maximum number of bytes", c.MaxBytes)
	return errs
}

func (c *Config) validateSweep() (errs []error) {
	switch {
	case !c.NoSweep && c.SweepInterval < 10*time.Millisecond:
		errs = append(errs, fmt.Errorf("sweep_interval is %s: at least 10ms", c.SweepInterval))
	case c.NoSweep && c.SweepInterval != 0:
		errs = append(errs, fmt.Errorf("sweep_interval is %s, and NoSweep is set: set only one of them", c.SweepInterval))
	}
	if c.NoSweep && c.Ack != AckSettled && !c.SweptElsewhere {
		errs = append(errs, errors.New("NoSweep needs AckSettled: without sweeps, only the message starts the next attempt"))
	}
	if c.NoSweep && len(c.Sources) == 0 {
		errs = append(errs, errors.New("NoSweep needs a source"))
	}
	return errs
}

func sharedOutputs(ps []Pipeline) (errs []error) {
	for i := range ps {
		for j := range i {
			a, b := ps[i].To, ps[j].To
			if a != nil && b != nil && a.Bucket == b.Bucket && nested(a.Prefix, b.Prefix) {
				errs = append(errs, fmt.Errorf("pipelines %s and %s could write the same output: use output prefixes that do not contain each other",
					event.Quote(ps[j].Name), event.Quote(ps[i].Name)))
			}
		}
	}
	return errs
}

func (p *Pipeline) target() string {
	if r, ok := p.Handler.(Replacer); ok {
		return r.Target()
	}
	return ""
}

func sharedTargets(ps []Pipeline) (errs []error) {
	for i := range ps {
		for j := range i {
			a, b := &ps[j], &ps[i]
			if a.target() != "" && a.target() == b.target() && a.Match.overlaps(&b.Match) {
				errs = append(errs, fmt.Errorf("pipelines %s and %s can match the same object, and both write to %s: match different objects, or write to different targets",
					event.Quote(a.Name), event.Quote(b.Name), a.target()))
			}
		}
	}
	return errs
}

// The key of an object in both begins with the longer prefix and ends with the longer suffix.
func (m *Match) overlaps(o *Match) bool {
	return m.Bucket == o.Bucket && nested(m.Prefix, o.Prefix) && (len(m.Suffix) == 0 || len(o.Suffix) == 0 ||
		slices.ContainsFunc(m.Suffix, func(a string) bool {
			return slices.ContainsFunc(o.Suffix, func(b string) bool { return strings.HasSuffix(a, b) || strings.HasSuffix(b, a) })
		}))
}

func nested(a, b string) bool { return strings.HasPrefix(a, b) || strings.HasPrefix(b, a) }

// feeds ignores suffixes, so that a cycle cannot depend on the names of objects.
func feeds(a, b *Pipeline) bool {
	return a.To != nil && a.To.Bucket == b.Match.Bucket && nested(a.To.Prefix, b.Match.Prefix)
}

func findCycle(ps []Pipeline) []string {
	for start := range ps {
		if path := pathTo(ps, start, start, make([]bool, len(ps))); path != nil {
			return path
		}
	}
	return nil
}

func pathTo(ps []Pipeline, from, goal int, seen []bool) []string {
	seen[from] = true
	for next := range ps {
		if !feeds(&ps[from], &ps[next]) {
			continue
		}
		if next == goal {
			return []string{ps[from].Name, ps[goal].Name}
		}
		if !seen[next] {
			if path := pathTo(ps, next, goal, seen); path != nil {
				return append([]string{ps[from].Name}, path...)
			}
		}
	}
	return nil
}
