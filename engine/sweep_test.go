package engine

import (
	"testing"
	"time"
)

func TestSweepAsksAgain(t *testing.T) {
	now := time.Unix(1000, 0)
	later := now.Add(time.Second)
	for _, c := range []struct {
		what   string
		before sweep
		answer sweepAnswer
		atOnce bool
	}{
		{"a full answer with something to do", sweep{limit: 4}, sweepAnswer{rows: 4, adopted: 1}, true},
		{"a full answer with nothing to do", sweep{limit: 4}, sweepAnswer{rows: 4}, false},
		{"all that is due", sweep{limit: 4}, sweepAnswer{rows: 3, adopted: 3}, false},
		{"more unreadable rows than before", sweep{limit: 4, unreadable: 1}, sweepAnswer{rows: 4, unreadable: 2}, true},
		{"no more unreadable rows than before", sweep{limit: 4, unreadable: 2}, sweepAnswer{rows: 4, unreadable: 2}, false},
		{"unreadable rows among all that is due", sweep{limit: 4}, sweepAnswer{rows: 3, unreadable: 2}, false},
	} {
		s := c.before
		s.asked = true
		s.finish(c.answer, false, now, later)
		if s.asked || s.due(now) != c.atOnce || !s.due(later) || s.complete || !s.answered {
			t.Errorf("%s: %+v, want another sweep at once: %t", c.what, s, c.atOnce)
		}
	}
}

func TestSweepLimit(t *testing.T) {
	for _, c := range []struct{ attempts, unreadable, want int }{
		{0, 0, 1}, {7, 0, 7}, {1000, 0, maxSwept}, {7, 3, 13}, {7, 1_000_000, 7 + maxUnreadable},
	} {
		s := sweep{unreadable: c.unreadable}
		if got := s.begin(c.attempts); got != c.want || s.due(time.Unix(1000, 0)) {
			t.Errorf("%d attempts, %d unreadable rows: a sweep of %d, want %d", c.attempts, c.unreadable, got, c.want)
		}
	}
}

func TestSweepOnceIsComplete(t *testing.T) {
	now := time.Unix(1000, 0)
	for _, c := range []struct {
		answer             sweepAnswer
		complete, answered bool
	}{
		{sweepAnswer{rows: 3}, true, true},
		{sweepAnswer{rows: 4, adopted: 4}, false, true},
		{sweepAnswer{failed: true}, false, false},
	} {
		s := sweep{limit: 4}
		if s.finish(c.answer, true, now, now); s.complete != c.complete || s.answered != c.answered || s.due(now) == c.complete {
			t.Errorf("%+v leads to %+v", c.answer, s)
		}
	}
}
