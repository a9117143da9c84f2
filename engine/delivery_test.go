package engine

import (
	"errors"
	"testing"
	"time"

	"github.com/pawlhq/pawl/ledger"
)

func TestDeliveryWaitsForAllItems(t *testing.T) {
	d := newDelivery(&Deliver{ID: 7, Items: make([]Item, 3)}, time.Unix(1000, 0))
	var stats Stats
	for _, v := range []ledger.Verdict{ledger.Raised, ledger.Duplicate, ledger.Stale} {
		d.count(v, &stats)
	}
	for item := range 3 {
		if last := d.close(); last != (item == 2) {
			t.Errorf("item %d of three is the last: %t", item, last)
		}
	}
	if want := (Answer{ID: 7, Ack: true, Raised: 1, Duplicate: 1, Stale: 1}); d.answer != want || stats != (Stats{Raised: 1, Duplicate: 1, Stale: 1}) {
		t.Errorf("answer %+v, statistics %+v", d.answer, stats)
	}
	cause := errors.New("last cause")
	d.refuse(time.Minute, errors.New("first cause"))
	d.refuse(time.Second, cause)
	if d.answer.Ack || d.answer.After != time.Minute || d.answer.Err != cause {
		t.Errorf("refused twice: %+v", d.answer)
	}
}
