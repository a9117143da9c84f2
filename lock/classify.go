package lock

import (
	"slices"

	"github.com/pawlhq/pawl/cell"
)

// version is the state of a lease, as it was read or written.
type version struct {
	exists bool
	etag   string // or the version of its register
	rec    Record
}

// classify tells the fate of a write with this nonce, sent on the condition that
// the object is base, from what is there now.
//
// Versions are told apart by nonce: the ETag that comes with a read may be that
// of the object before.
//
// What is lost stays lost: each version has an ETag of its own, which never
// comes back, so that a late copy finds its condition broken. Only where an
// object was deleted can a copy of the very first write land later.
func classify(now, base version, nonce string) cell.Fate {
	switch {
	case now.exists && now.rec.Nonce == nonce:
		return cell.Landed
	case now.exists && slices.Contains(now.rec.Before, nonce):
		return cell.Superseded
	case !now.exists && !base.exists, now.exists && base.exists && now.rec.Nonce == base.rec.Nonce:
		return cell.Unclear
	}
	return cell.Lost
}
