//go:build unix

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

type counts struct {
	elapsed time.Duration
	names   []string // in the order of the table
	count   map[string]int
}

func (c *counts) add(name string, n int) {
	if c.count == nil {
		c.count = map[string]int{}
	}
	if _, ok := c.count[name]; !ok {
		c.names = append(c.names, name)
	}
	c.count[name] += n
}

func (c *counts) merge(o *counts) {
	c.elapsed += o.elapsed
	for _, name := range o.names {
		c.add(name, o.count[name])
	}
}

func (c *counts) String() string {
	var b strings.Builder
	for _, name := range c.names {
		fmt.Fprintf(&b, "%10d %s\n", c.count[name], name)
	}
	fmt.Fprintf(&b, "%9.0fs", c.elapsed.Seconds())
	return b.String()
}

func (r *round) countRound(t *testing.T) *counts {
	t.Helper()
	c := &counts{elapsed: time.Since(r.began)}
	c.add("rounds", 1)
	r.countFaults(c)
	n := r.relay.Messages()
	taken, garbled := r.relay.received()
	c.add("notifications", taken)
	c.add("  dropped", n.Dropped)
	c.add("  doubled", n.Doubled)
	c.add("  delayed", n.Delayed)
	c.add("  garbled by the store", garbled)
	c.add("copies acknowledged", n.Sent)
	c.add("  after a newer one", n.OutOfOrder)
	c.add("  rejected offers", n.Resent)
	c.add("losses found by an audit", r.auditFindings)
	r.countAttempts(c)
	c.add("  ended without their lease", r.fleet.count(t, "attempt lost its lease"))
	c.add("delayed HEADs of inputs", r.network.delayedHeads)
	c.add("delayed writes of outputs", r.network.delayedWrites+r.network.abortedWrites)
	c.add("  with an aborted connection", r.network.abortedWrites)
	c.add("  rejected by their precondition", r.network.rejectedWrites)
	c.add("  landed after a write of a higher fence", r.lateWrites)
	c.add("writes of outputs without an answer", r.network.lostAnswers)
	for _, effects := range r.receiver.byKey() {
		_, late, known := fencingReceiver(effects)
		c.add("effects at the receiver", len(effects))
		c.add("  rejected by their idempotency key", known)
		c.add("  rejected by their fence", late)
	}
	return c
}

// missing returns the kinds of faults and their effects that rounds must show, but that never happened.
// Queues change the order of notifications themselves.
func (c *counts) missing(queues bool) (names []string) {
	must := []string{
		"  kills during an attempt", "  stops during an attempt", "  dropped", "  doubled", "  delayed", "losses found by an audit",
		"  taken over", "  to verify", "  ended without their lease", "  rejected by their idempotency key", "delayed writes of outputs", "  rejected by their precondition",
	}
	if !queues {
		must = append(must, "  after a newer one")
	}
	for _, name := range must {
		if c.count[name] == 0 {
			names = append(names, strings.TrimSpace(name))
		}
	}
	return names
}

func (r *round) countAttempts(c *counts) {
	c.add("writes of a ledger row", r.journal.rows)
	for _, l := range r.journal.histories {
		for _, a := range l.attempts {
			c.add("attempts", 1)
			c.add("  committed an effect", oneIf(a.committedEffect()))
			c.add("  of unknown result", oneIf(a.unknown))
			c.add("  taken over", oneIf(a.outcome == "taken over"))
			c.add("  to verify", oneIf(a.verifying))
		}
	}
}

// countFaults counts only faults of processes whose claimed attempt another process took over.
func (r *round) countFaults(c *counts) {
	interrupted := map[int]bool{}
	for _, l := range r.journal.histories {
		for _, a := range l.attempts {
			if a.outcome != "taken over" {
				continue
			}
			for i, b := range r.fleet.injected {
				if ownedBy(a.owner, b.pid) && !b.at.Before(a.at) {
					interrupted[i] = true
					break
				}
			}
		}
	}
	for _, kind := range []string{"kills", "stops"} {
		for i, b := range r.fleet.injected {
			hit := (b.freeze == 0) == (kind == "kills")
			c.add(kind, oneIf(hit))
			c.add("  "+kind+" during an attempt", oneIf(hit && interrupted[i]))
		}
	}
}

func oneIf(b bool) int {
	if b {
		return 1
	}
	return 0
}
