package ledger

import (
	"cmp"
	"net/url"
	"strconv"
	"time"

	"github.com/pawlhq/pawl/event"
)

// Version is one state of an object.
type Version struct {
	Sequencer event.Sequencer `json:"seq,omitzero"`
	// Generation raises a version without a new sequencer. A later sequencer outranks any
	// generation.
	Generation uint64     `json:"gen,omitzero"`
	Kind       event.Kind `json:"kind,omitzero"`
	Identity   Identity   `json:"id,omitzero"`
}

// Compare orders two versions of one object by sequencer, then generation.
func (v Version) Compare(w Version) int {
	return cmp.Or(v.Sequencer.CompareSameKey(w.Sequencer), cmp.Compare(v.Generation, w.Generation))
}

// Order returns the version's sequencer and generation as text.
func (v Version) Order() string {
	return v.Sequencer.String() + "." + strconv.FormatUint(v.Generation, 10)
}

// Identity identifies one content by the data that the store reports about it. Without versioning,
// two equal rewrites within a second have the same identity.
type Identity struct {
	VersionID string    `json:"version,omitzero"`
	ETag      string    `json:"etag,omitzero"`
	ModTime   time.Time `json:"mtime,omitzero"` // whole seconds
	Meta      string    `json:"meta,omitzero"`  // digest of the metadata
	Size      int64     `json:"size,omitzero"`
}

// Same compares version IDs if either has one, otherwise all other members.
func (i Identity) Same(j Identity) bool {
	if i.VersionID != "" || j.VersionID != "" {
		return i.VersionID == j.VersionID
	}
	return i.ETag == j.ETag && i.ModTime.Equal(j.ModTime) && i.Meta == j.Meta && i.Size == j.Size
}

// CompatibleWith reports whether content that was read as seen may be the content of i. An identity
// from an event is incomplete, so only the members that i has are compared.
func (i Identity) CompatibleWith(seen Identity) bool {
	if i.VersionID != "" && seen.VersionID != "" {
		return i.VersionID == seen.VersionID
	}
	return (i.ETag == "" || i.ETag == seen.ETag) &&
		(i.ModTime.IsZero() || i.ModTime.Equal(seen.ModTime)) &&
		(i.Meta == "" || i.Meta == seen.Meta) &&
		(i.Size == 0 || i.Size == seen.Size)
}

// String returns a distinct text in printable ASCII for each identity.
func (i Identity) String() string {
	if i.VersionID != "" {
		return "version=" + url.QueryEscape(i.VersionID)
	}
	return "etag=" + url.QueryEscape(i.ETag) + "&mtime=" + strconv.FormatInt(i.ModTime.Unix(), 10) +
		"&meta=" + i.Meta + "&size=" + strconv.FormatInt(i.Size, 10)
}
