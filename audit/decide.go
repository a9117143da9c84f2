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

// String returns the name of the finding, for example "lost creation".
func (l Finding) String() string {
	return [...]string{"none", "lost creation", "lost overwrite", "lost removal"}[l]
}

// Observation is the state of an object, from a HEAD request or a listing.
type Observation struct {
	Exists   bool
	Identity ledger.Identity // set if Exists
}

// Decide compares a row with an observation of its object. If a notification was lost, it
// returns the finding and the row with Want raised to the observation. Otherwise it returns
// None and the unchanged row, which the caller must not write.
//
// The caller must load the row before it observes the object. If the object has no row, row has
// only a key, as for [ledger.Row.Observe]. The returned row has the nonce of row. The caller's
// swap expects this nonce and writes a new one.
//
// settle is the settle window. Decide reports an existing object only if the object is older
// than the settle window. The store does not report when an object was removed, so Decide
// reports a removal only if the row has not changed during the settle window, and its last
// event is older than the window. It may therefore report a
// removal whose notification is only late, which is harmless.
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

// compare returns the finding about an object. It ignores objects and rows that changed at or
// after the time before.
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
	created := known.Kind == event.Created // false if the known version is a removal, or the row has no version
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
