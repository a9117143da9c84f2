package audit

import (
	"time"

	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
)

// Finding says which notification never arrived.
type Finding uint8

// The losses.
const (
	None         Finding = iota
	LostCreation         // of an object with no row, or with that of a removal
	LostOverwrite
	LostRemoval
)

// String returns the loss's name, in words.
func (l Finding) String() string {
	return [...]string{"none", "lost creation", "lost overwrite", "lost removal"}[l]
}

// Observation is what a look at an object has shown.
type Observation struct {
	Exists   bool
	Identity ledger.Identity // of an object that exists
}

// Decide returns what was lost about the object of a row, and the row with Want
// raised to what was seen. Where nothing was lost it is the row as it was, and
// nothing is to be written.
//
// The row must have been loaded before the object was looked at. That of an
// object without one is a Row with nothing but its key, as for
// [ledger.Row.Observe]. The next row carries the nonce of the former one: it is
// what the swap must expect, and a fresh one replaces it.
//
// settle is how late a notification may be. An object must be older than that.
// One that is gone does not say since when: instead its row must have been quiet
// for so long. So a removal is found early where its notification is only late,
// which does no harm.
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

// compare finds a loss about an object that was last touched before a time.
func compare(row *ledger.Row, seen Observation, before time.Time) Finding {
	known := row.Have
	switch {
	case row.Unreadable != nil:
		return None
	case row.Dead:
		known = row.Want // which names what it died of
	case row.Held() || !row.Settled():
		return None // somebody works on it, and will look
	}
	created := known.Kind == event.Created // else removed, or never heard of
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
