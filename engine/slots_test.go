package engine

import (
	"slices"
	"testing"
	"time"
)

func TestSlotsPerPipeline(t *testing.T) {
	for _, c := range []struct {
		common   int
		reserved [3]int
		want     []int // slots that each pipeline gets if they request all slots in this order
	}{
		{8, [3]int{}, []int{6, 1, 1}},   // one guaranteed slot each, and five more for the first
		{16, [3]int{}, []int{12, 2, 2}}, // two guaranteed slots each
		{1, [3]int{}, []int{1, 1, 1}},
		{8, [3]int{3, 0, 0}, []int{3, 6, 2}},
		{8, [3]int{20, 1, 2}, []int{20, 1, 2}},
		{8, [3]int{20, 0, 2}, []int{20, 8, 2}},
	} {
		s := slots{common: c.common, bytes: 100}
		var got []int
		for _, reserved := range c.reserved {
			s.addShare(reserved)
		}
		for _, sh := range s.shares {
			for s.room(sh) {
				s.acquire(sh, 0, time.Time{})
			}
			got = append(got, sh.running)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%d slots, reserved %v: %v, want %v", c.common, c.reserved, got, c.want)
		}
	}
}

func TestSlotsLimitBytesOfAPipeline(t *testing.T) {
	s := slots{common: 8, bytes: 10}
	a, b := s.addShare(0), s.addShare(0)
	if !s.fits(a, 1000) {
		t.Error("an object larger than the limit never runs")
	}
	held := s.acquire(a, 4, time.Time{})
	if !s.fits(a, 6) || s.fits(a, 7) || !s.fits(b, 1000) {
		t.Errorf("6 bytes are left: %v, %v, and in a pipeline at rest %v", s.fits(a, 6), s.fits(a, 7), s.fits(b, 1000))
	}
	s.release(&held)
	s.release(&held) // a slot is released once
	if s.used != 0 || s.usedBytes != 0 || a.running != 0 || held.held() {
		t.Errorf("after the release: %+v", s)
	}
}

func TestQuarantineEnds(t *testing.T) {
	now := time.Unix(1000, 0)
	end := now.Add(time.Minute)
	s := slots{common: 8}
	sh := s.addShare(0)
	first, plain := s.acquire(sh, 0, end), s.acquire(sh, 0, time.Time{})
	if !s.quarantines(now) || s.quarantineOverdue(now) || s.quarantines(end) || !s.quarantineOverdue(end) {
		t.Error("a quarantine does not end at its time")
	}
	if s.release(&plain); !s.quarantine {
		t.Error("another attempt's end ends the quarantine")
	}
	if s.release(&first); s.quarantine || s.quarantines(now) || s.quarantineOverdue(end) {
		t.Error("the quarantine outlives its attempt")
	}
}
