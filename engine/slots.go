package engine

import "time"

// slots limits the attempts that run at a time, and the summed size of their objects.
type slots struct {
	common  int   // slots of the pipelines without reserved ones
	bytes   int64 // of all attempts, reserved slots included
	shares  []*share
	sharers int // shares without reserved slots

	used      int
	usedBytes int64

	quarantine    bool      // an attempt in quarantine runs
	quarantineEnd time.Time // when other attempts may begin beside it
}

// share is one pipeline's part of the slots. A pipeline is sure of some slots,
// whatever the others do. The rest go to the pipeline that asks first.
type share struct {
	running  int // slots that attempts hold
	reserved int // slots that only this pipeline uses; 0: it uses the common slots
}

// slot is what an attempt holds from its claim to the end of its task. The zero slot
// is none.
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

// guaranteed is the number of common slots that each pipeline is sure of: together
// half of them, and at least one each.
func (s *slots) guaranteed() int { return max(1, s.common/(2*s.sharers)) }

// room reports whether the pipeline may have one more slot.
func (s *slots) room(sh *share) bool {
	if sh.reserved > 0 {
		return sh.running < sh.reserved
	}
	sure := s.guaranteed()
	if sh.running < sure || s.sharers == 1 && sh.running < s.common {
		return true
	}
	open := s.common - s.sharers*sure // slots beyond the guaranteed ones
	for _, other := range s.shares {
		if other.reserved == 0 {
			open -= max(0, other.running-sure)
		}
	}
	return open > 0
}

// fits reports whether there is a slot for an object. An object larger than the
// bytes left runs if no other object of its pipeline does.
func (s *slots) fits(sh *share, size int64) bool {
	if s.used == 0 {
		return true
	}
	return s.room(sh) && (sh.running == 0 || size <= s.bytes-s.usedBytes)
}

// acquire takes a slot. An attempt in quarantine keeps others from beginning until
// the given time; zero: it is not in quarantine.
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

// release frees a slot, if it is held.
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

// quarantines reports whether an attempt in quarantine keeps others from beginning.
func (s *slots) quarantines(now time.Time) bool { return s.quarantine && now.Before(s.quarantineEnd) }

// quarantineOverdue reports whether an attempt in quarantine runs for longer than it
// keeps others from beginning.
func (s *slots) quarantineOverdue(now time.Time) bool {
	return s.quarantine && !now.Before(s.quarantineEnd)
}
