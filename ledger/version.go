package ledger

import (
	"cmp"
	"net/url"
	"strconv"
	"time"

	"github.com/pawlhq/pawl/event"
)

// Version is one state of one object.
type Version struct {
	Sequencer event.Sequencer `json:"seq,omitzero"`
	// Generation raises a version without inventing a sequencer: an untrusted
	// event, an audit or an operator asks for another look. It never outranks
	// a later sequencer.
	Generation uint64     `json:"gen,omitzero"`
	Kind       event.Kind `json:"kind,omitzero"`
	Identity   Identity   `json:"id,omitzero"`
}

// Compare orders two versions of one object by sequencer, then generation. What
// they hold does not count.
func (v Version) Compare(w Version) int {
	return cmp.Or(v.Sequencer.CompareSameKey(w.Sequencer), cmp.Compare(v.Generation, w.Generation))
}

// Order returns the version's place in the order, as text for people and for
// output metadata.
func (v Version) Order() string {
	return v.Sequencer.String() + "." + strconv.FormatUint(v.Generation, 10)
}

// Identity tells two contents of one object apart by what the store says of
// them. Two rewrites within one second with equal content and equal metadata
// are one identity on an unversioned bucket.
type Identity struct {
	VersionID string    `json:"version,omitzero"`
	ETag      string    `json:"etag,omitzero"`
	ModTime   time.Time `json:"mtime,omitzero"` // whole seconds
	Meta      string    `json:"meta,omitzero"`  // digest of the returned metadata
	Size      int64     `json:"size,omitzero"`
}

// Same reports whether i and j are one content: of one version id where both
// have it, or else with equal ETag, modification time, metadata and size.
func (i Identity) Same(j Identity) bool {
	if i.VersionID != "" || j.VersionID != "" {
		return i.VersionID == j.VersionID
	}
	return i.ETag == j.ETag && i.ModTime.Equal(j.ModTime) && i.Meta == j.Meta && i.Size == j.Size
}

// CompatibleWith reports whether what a look has shown may be the content that i names.
// Where i comes from an event it lacks the modification time and the metadata,
// and may lack more: only what it records is compared. Two version ids decide
// alone.
func (i Identity) CompatibleWith(seen Identity) bool {
	if i.VersionID != "" && seen.VersionID != "" {
		return i.VersionID == seen.VersionID
	}
	return (i.ETag == "" || i.ETag == seen.ETag) &&
		(i.ModTime.IsZero() || i.ModTime.Equal(seen.ModTime)) &&
		(i.Meta == "" || i.Meta == seen.Meta) &&
		(i.Size == 0 || i.Size == seen.Size)
}

// String returns the identity in printable ASCII, equal for equal identities
// and different for different ones. It is what an output object records of its
// source.
func (i Identity) String() string {
	if i.VersionID != "" {
		return "version=" + url.QueryEscape(i.VersionID)
	}
	return "etag=" + url.QueryEscape(i.ETag) + "&mtime=" + strconv.FormatInt(i.ModTime.Unix(), 10) +
		"&meta=" + i.Meta + "&size=" + strconv.FormatInt(i.Size, 10)
}
