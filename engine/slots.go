package engine

import "time"

type slots struct {
	common  int   // slots of the pipelines without reserved slots
	bytes   int64 // of the objects in all attempts
	shares  []*share
	sharers int // pipelines without reserved slots

	used      int
	usedBytes int64

	quarantine    bool      // an attempt in quarantine runs
	quarantineEnd time.Time // when other attempts may start although it runs
}

// share is one pipeline's part of the slots.
type share struct {
	running  int
	reserved int // 0: the pipeline uses the common slots
}

// slot is held from the claim to the end of the task. The zero slot is not held.
type slot struct {
	share      *share
	size       int64
	quarantine bool
}

func (s *slot) held() bool { return s.share != nil }

func (s *slots) addShare(reserved int) *share {
	sh := &share{reserved: reserved}
	s.shares = append(s.shares, sh)
	if reserved == 0 {
		s.sharers++
	}
	return sh
}

// guaranteed shares half of the common slots among the pipelines that use them.
func (s *slots) guaranteed() int { return max(1, s.common/(2*s.sharers)) }

func (s *slots) room(sh *share) bool {
	if sh.reserved > 0 {
		return sh.running < sh.reserved
	}
	sure := s.guaranteed()
	if sh.running < sure || s.sharers == 1 && sh.running < s.common {
		return true
	}
	open := s.common - s.sharers*sure // beyond the guaranteed ones
	for _, other := range s.shares {
		if other.reserved == 0 {
			open -= max(0, other.running-sure)
		}
	}
	return open > 0
}

// An object larger than the free bytes runs if no other object of its pipeline runs.
func (s *slots) fits(sh *share, size int64) bool {
	if s.used == 0 {
		return true
	}
	return s.room(sh) && (sh.running == 0 || size <= s.bytes-s.usedBytes)
}

// A non-zero quarantineEnd keeps other attempts from starting until then.
func (s *slots) acquire(sh *share, size int64, quarantineEnd time.Time) slot {
	sh.running++
	s.used++
	s.usedBytes += size
	if quarantineEnd.IsZero() {
		return slot{share: sh, size: size}
	}
	s.quarantine, s.quarantineEnd = true, quarantineEnd
	return slot{share: sh, size: size, quarantine: true}
}

func (s *slots) release(sl *slot) {
	if !sl.held() {
		return
	}
	s.quarantine = s.quarantine && !sl.quarantine
	sl.share.running--
	s.used--
	s.usedBytes -= sl.size
	*sl = slot{}
}

func (s *slots) quarantines(now time.Time) bool { return s.quarantine && now.Before(s.quarantineEnd) }

func (s *slots) quarantineOverdue(now time.Time) bool {
	return s.quarantine && !now.Before(s.quarantineEnd)
}
