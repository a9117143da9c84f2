package engine

import (
	"time"

	"github.com/pawlhq/pawl/ledger"
)

type delivery struct {
	open   int // unanswered items
	answer Answer
	came   time.Time
}

func newDelivery(in *Deliver, now time.Time) *delivery {
	return &delivery{open: len(in.Items), answer: Answer{ID: in.ID, Ack: true}, came: now}
}

func (d *delivery) count(v ledger.Verdict, s *Stats) {
	switch v {
	case ledger.Raised:
		d.answer.Raised++
		s.Raised++
	case ledger.Duplicate:
		d.answer.Duplicate++
		s.Duplicate++
	case ledger.Stale:
		d.answer.Stale++
		s.Stale++
	}
}

// refuse marks the message for redelivery, after the longest wait of its items.
func (d *delivery) refuse(after time.Duration, err error) {
	d.answer.Ack = false
	d.answer.After = max(d.answer.After, after)
	d.answer.Err = err
}

// close reports whether the item was the last.
func (d *delivery) close() bool {
	d.open--
	return d.open == 0
}
