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
	// Generation raises a version without a new sequencer: for an untrusted event, an
	// audit or an operator. A later sequencer outranks any generation.
	Generation uint64     `json:"gen,omitzero"`
	Kind       event.Kind `json:"kind,omitzero"`
	Identity   Identity   `json:"id,omitzero"`
}

// Compare orders two versions of one object by sequencer, then generation.
func (v Version) Compare(w Version) int {
	return cmp.Or(v.Sequencer.CompareSameKey(w.Sequencer), cmp.Compare(v.Generation, w.Generation))
}

// Order returns the version's sequencer and generation as text, for people and for output
// metadata.
func (v Version) Order() string {
	return v.Sequencer.String() + "." + strconv.FormatUint(v.Generation, 10)
}

// Identity is what the store reports about one content. In an unversioned bucket, two
// rewrites within one second with equal content and metadata have the same identity.
type Identity struct {
	VersionID string    `json:"version,omitzero"`
	ETag      string    `json:"etag,omitzero"`
	ModTime   time.Time `json:"mtime,omitzero"` // whole seconds
	Meta      string    `json:"meta,omitzero"`  // digest of the metadata
	Size      int64     `json:"size,omitzero"`
}

// Same reports whether i and j are the same content. It compares version IDs if either has
// one, otherwise ETag, modification time, metadata and size.
func (i Identity) Same(j Identity) bool {
	if i.VersionID != "" || j.VersionID != "" {
		return i.VersionID == j.VersionID
	}
	return i.ETag == j.ETag && i.ModTime.Equal(j.ModTime) && i.Meta == j.Meta && i.Size == j.Size
}

// CompatibleWith reports whether seen, the identity of content that was read, may be the
// identity of the same content as i. If i comes from an event, it lacks the modification
// time and the metadata, and perhaps more, so CompatibleWith compares only the members
// that i has. If both have a version ID, it compares only the IDs.
func (i Identity) CompatibleWith(seen Identity) bool {
	if i.VersionID != "" && seen.VersionID != "" {
		return i.VersionID == seen.VersionID
	}
	return (i.ETag == "" || i.ETag == seen.ETag) &&
		(i.ModTime.IsZero() || i.ModTime.Equal(seen.ModTime)) &&
		(i.Meta == "" || i.Meta == seen.Meta) &&
		(i.Size == 0 || i.Size == seen.Size)
}

// String returns the identity in printable ASCII. Different identities have different
// texts. Outputs record it as their source.
func (i Identity) String() string {
	if i.VersionID != "" {
		return "version=" + url.QueryEscape(i.VersionID)
	}
	return "etag=" + url.QueryEscape(i.ETag) + "&mtime=" + strconv.FormatInt(i.ModTime.Unix(), 10) +
		"&meta=" + i.Meta + "&size=" + strconv.FormatInt(i.Size, 10)
}
