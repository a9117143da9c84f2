package archive

import (
	"testing"
	"time"
)

func TestFailingWorkerPausesThenProbes(t *testing.T) {
	const lease = 30 * time.Second
	var h health
	now := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	want := func(m mode) {
		t.Helper()
		if got := h.mode(now); got != m {
			t.Errorf("%s: want %s", got, m)
		}
	}
	h.fail(now, lease)
	h.fail(now, lease)
	h.succeed()
	h.fail(now, lease)
	h.fail(now, lease)
	want(sharing)
	for range 5 {
		h.fail(now, lease) // they started before the pause
	}
	want(resting)
	pause := 2 * lease
	for range 6 {
		now = now.Add(pause - 1)
		want(resting)
		now = now.Add(1)
		want(probing)
		h.fail(now, lease)
		want(resting)
		pause = min(2*pause, 20*lease)
	}
	h.succeed()
	want(sharing)
	h.fail(now, lease)
	want(sharing)
}

func TestShares(t *testing.T) {
	for _, c := range []struct {
		peers peers
		own   mode
		open  int
		want  int
	}{
		{peers{}, sharing, 8, 8},
		{peers{}, sharing, 0, 1},
		{peers{sharing: 1}, sharing, 8, 4},
		{peers{sharing: 2}, sharing, 8, 3},
		{peers{sharing: 9}, sharing, 8, 1},
		{peers{probing: 1}, sharing, 8, 7},
		{peers{sharing: 1, probing: 2}, sharing, 8, 3},
		{peers{probing: 1}, sharing, 1, 1},
		{peers{sharing: 1}, probing, 8, 1},
		{peers{sharing: 1}, resting, 8, 0},
		{peers{}, resting, 8, 8},
		{peers{probing: 3}, probing, 8, 8},
	} {
		if got := c.peers.share(c.open, c.own); got != c.want {
			t.Errorf("%+v, %s, %d open shards: a share of %d, want %d", c.peers, c.own, c.open, got, c.want)
		}
	}
}
