//go:build unix

package e2e

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"
)

// tally says how much a round, or several, has shown.
type tally struct {
	rounds                                        int
	kills, stops, killsInWork, stopInWork         int
	attempts, takenOver, unknown, lost, suspected int
	committed, verified, writes                   int
	carried                                       carried
	healed                                        int
	effects, repeats, late, lateWrites            int
	took                                          time.Duration
}

// tally counts a round, adds it to a total, and wants it to have shown
// something.
func (r *round) tally(t *testing.T, total *tally) *tally {
	t.Helper()
	c := &tally{rounds: 1, carried: r.relay.counts, healed: r.healed, lateWrites: r.lateWrites, took: time.Since(r.began), writes: r.journal.rows}
	r.countStrikes(c)
	for _, l := range r.journal.lives {
		for _, e := range l.notes {
			if e.What == "suspected" {
				c.suspected++
			}
		}
		for _, a := range l.attempts {
			c.attempts++
			switch {
			case a.end == "taken over":
				c.takenOver++
			case a.acted():
				c.committed++
			}
			if a.unknown {
				c.unknown++
			}
			if a.verifying {
				c.verified++
			}
		}
	}
	c.lost = r.fleet.count(t, "an attempt ended without its lease")
	for _, effects := range r.receiver.byKey() {
		_, repeats, late := careful(effects)
		c.effects += len(effects)
		c.repeats += repeats
		c.late += late
	}
	n := &c.carried
	for _, shown := range []int{c.killsInWork, c.stopInWork, c.takenOver, c.lost, c.repeats, c.verified, n.dropped, n.doubled, n.delayed, n.outOfOrder, c.healed} {
		if shown == 0 {
			t.Errorf("something never happened, and so the test shows too little:\n%s", c)
			break
		}
	}
	total.add(c)
	return c
}

// countStrikes finds the strikes that interrupted work: the first at its process
// since an attempt was claimed that others then took over.
func (r *round) countStrikes(c *tally) {
	interrupted := map[int]bool{}
	for _, l := range r.journal.lives {
		for _, a := range l.attempts {
			if a.end != "taken over" {
				continue
			}
			for i, b := range r.fleet.blows {
				if strings.Contains(a.owner, fmt.Sprintf("/%d/", b.pid)) && !b.at.Before(a.at) {
					interrupted[i] = true
					break
				}
			}
		}
	}
	for i, b := range r.fleet.blows {
		switch {
		case b.stop == 0 && interrupted[i]:
			c.killsInWork++
			fallthrough
		case b.stop == 0:
			c.kills++
		case interrupted[i]:
			c.stopInWork++
			fallthrough
		default:
			c.stops++
		}
	}
}

func (c *tally) add(o *tally) {
	c.rounds += o.rounds
	c.kills += o.kills
	c.stops += o.stops
	c.killsInWork += o.killsInWork
	c.stopInWork += o.stopInWork
	c.attempts += o.attempts
	c.takenOver += o.takenOver
	c.unknown += o.unknown
	c.lost += o.lost
	c.suspected += o.suspected
	c.committed += o.committed
	c.verified += o.verified
	c.writes += o.writes
	c.healed += o.healed
	c.effects += o.effects
	c.repeats += o.repeats
	c.late += o.late
	c.lateWrites += o.lateWrites
	c.took += o.took
	c.carried.taken += o.carried.taken
	c.carried.garbled += o.carried.garbled
	c.carried.dropped += o.carried.dropped
	c.carried.doubled += o.carried.doubled
	c.carried.delayed += o.carried.delayed
	c.carried.acked += o.carried.acked
	c.carried.outOfOrder += o.carried.outOfOrder
	c.carried.refused += o.carried.refused
}

func (c *tally) String() string {
	var b strings.Builder
	line := func(n int, what string) { fmt.Fprintf(&b, "%10d %s\n", n, what) }
	line(c.rounds, fmt.Sprintf("rounds in %s", c.took.Round(time.Second)))
	line(c.kills, fmt.Sprintf("kills (signal %d), of which %d in mid-work", syscall.SIGKILL, c.killsInWork))
	line(c.stops, fmt.Sprintf("stops for longer than a lease (signals %d, %d), of which %d in mid-work", syscall.SIGSTOP, syscall.SIGCONT, c.stopInWork))
	line(c.carried.taken, "notifications")
	line(c.carried.garbled, "garbled by the store itself")
	line(c.carried.dropped, "dropped")
	line(c.carried.doubled, "doubled")
	line(c.carried.delayed, "delayed")
	line(c.carried.acked, "copies acknowledged")
	line(c.carried.outOfOrder, "out of order")
	line(c.carried.refused, "offered in vain")
	line(c.healed, "objects found by comparing the bucket with the ledger")
	line(c.writes, "writes of a ledger row")
	line(c.attempts, "attempts")
	line(c.takenOver, "taken over")
	line(c.unknown, "of unknown result")
	line(c.lost, "ended without their lease")
	line(c.suspected, "of these, suspected of an effect")
	line(c.verified, "to verify")
	line(c.committed, "effects committed")
	line(c.effects, "effects at the receiver")
	line(c.repeats, "repeats of them, refused by idempotency key")
	line(c.late, "late ones, refused by fence")
	line(c.lateWrites, "late writes of outputs, healed")
	return b.String()
}
