package audit

import (
	"time"

	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
)

// Finding is the kind of a lost notification.
type Finding uint8

// The findings.
const (
	None         Finding = iota
	LostCreation         // the object has no row, or the row of a removal
	LostOverwrite
	LostRemoval
)

// String returns the name, for example "lost creation".
func (l Finding) String() string {
	return [...]string{"none", "lost creation", "lost overwrite", "lost removal"}[l]
}

// Observation is the state of an object, from HEAD or a listing.
type Observation struct {
	Exists   bool
	Identity ledger.Identity // set if Exists
}

// Decide compares a row with an observation of its object. If a notification was lost, it returns
// the row with Want raised, and the finding. Otherwise it returns None and the unchanged row,
// which the caller must not write.
//
// The caller must load the row before it observes the object, and swap it on the nonce of row. If
// the object has no row, row has only a key, as for [ledger.Row.Observe].
//
// Decide ignores objects modified within the settle window. A store does not report when it
// removed an object, so Decide ignores removals if the row or its last event is that recent. It
// may still report a removal whose notification is only late, which is harmless.
func Decide(row ledger.Row, seen Observation, settle time.Duration, now time.Time) (ledger.Row, Finding) {
	loss := compare(&row, seen, now.Add(-settle))
	switch loss {
	case LostCreation, LostOverwrite:
		row = row.Raise(event.Created, seen.Identity, now)
	case LostRemoval:
		row = row.Raise(event.Removed, ledger.Identity{}, now)
	}
	return row, loss
}

// compare ignores objects and rows that changed at or after the time before.
func compare(row *ledger.Row, seen Observation, before time.Time) Finding {
	known := row.Have
	switch {
	case row.Unreadable != nil:
		return None
	case row.Dead:
		known = row.Want // the version that failed
	case row.Held() || !row.Settled():
		return None // a worker will read the object
	}
	created := known.Kind == event.Created // false if known is a removal or empty
	switch {
	case seen.Exists && !seen.Identity.ModTime.Before(before):
		return None
	case seen.Exists && !created:
		return LostCreation
	case seen.Exists && !known.Identity.CompatibleWith(seen.Identity):
		return LostOverwrite
	case !seen.Exists && created && row.UpdatedAt.Before(before) && row.EventTime.Before(before):
		return LostRemoval
	}
	return None
}
