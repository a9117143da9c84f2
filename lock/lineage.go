package lock

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/pawlhq/pawl/cell"
)

// Names of the metadata that an update writes. Every update also keeps the user's metadata.
const (
	metaCount = "pawl-update"     // number of updates of the object
	metaIDs   = "pawl-update-ids" // ids of the last updates, newest first
	metaFence = "pawl-lock-token" // highest fencing token of an update
)

const (
	// maxIDs is the maximum number of ids; they take 815 bytes of metadata. If fewer than minIDs
	// fit, the outcome of too many updates would be unknown.
	maxIDs, minIDs = 48, 8
	// idSize is the length of 64 random bits in hex.
	idSize = 16
	// maxMetadata is the maximum size of an object's metadata in bytes, including the prefixes of
	// the names. https://docs.aws.amazon.com/AmazonS3/latest/userguide/UsingMetadata.html
	maxMetadata    = 2 << 10
	metadataPrefix = "x-amz-meta-"
)

// lineage is the update history in the metadata of an object.
type lineage struct {
	count int64 // 0 if no update wrote the object
	ids   []string
	fence int64
}

func lineageOf(metadata map[string]string) lineage {
	var l lineage
	l.fence, _ = strconv.ParseInt(metadata[metaFence], 10, 64) // 0 if it is not a number
	count, err := strconv.ParseInt(metadata[metaCount], 10, 64)
	ids := strings.Split(metadata[metaIDs], ",")
	if err != nil || count < 1 || ids[0] == "" || int64(len(ids)) > count {
		return l
	}
	l.count, l.ids = count, ids
	return l
}

// with returns the lineage after the update with this id and fence.
func (l lineage) with(id string, fence int64) lineage {
	ids := slices.Concat([]string{id}, l.ids)
	return lineage{l.count + 1, ids[:min(len(ids), maxIDs)], max(l.fence, fence)}
}

// follows reports whether l continues the earlier lineage base, as far as the ids of l show.
func (l lineage) follows(base lineage) bool {
	at := l.count - base.count // index of the newest id of base
	return base.count == 0 || at >= int64(len(l.ids)) || l.ids[at] == base.ids[0]
}

// metadata returns the user's metadata with the lineage, including as many ids as fit. It reports
// false if fewer than minIDs fit.
func (l lineage) metadata(users map[string]string) (map[string]string, bool) {
	m := userMetadata(users)
	m[metaCount] = strconv.FormatInt(l.count, 10)
	if l.fence > 0 {
		m[metaFence] = strconv.FormatInt(l.fence, 10)
	}
	room := maxMetadata - len(metadataPrefix+metaIDs)
	for name, value := range m {
		room -= len(metadataPrefix) + len(name) + len(value)
	}
	fit := room / (idSize + len(","))
	m[metaIDs] = strings.Join(l.ids[:max(0, min(len(l.ids), fit))], ",")
	return m, fit >= minIDs
}

func userMetadata(metadata map[string]string) map[string]string {
	m := make(map[string]string, len(metadata)+3)
	maps.Copy(m, metadata)
	for _, name := range []string{metaCount, metaIDs, metaFence} {
		delete(m, name)
	}
	return m
}

type snapshot struct {
	exists bool
	etag   string
	lineage
}

// classifyUpdate returns the outcome of an update whose condition is that the object is still base.
// now is the current object.
//
// The outcome is unknown if more updates followed than the lineage has ids. If another program or a
// deletion broke the lineage, the outcome is Lost if the store refused the write, and unknown if it
// did not.
func classifyUpdate(now, base snapshot, id string, refused bool) (f cell.Outcome, known bool) {
	place := now.count - base.count - 1 // index of this update among the ids, if it landed
	switch {
	case len(now.ids) > 0 && now.ids[0] == id:
		return cell.Landed, true
	case slices.Contains(now.ids, id):
		return cell.Superseded, true
	case now.equals(base):
		return cell.Unclear, true
	case now.count == 0 || place < 0 || base.exists && base.count == 0 || !now.follows(base.lineage):
		return cell.Lost, refused
	}
	// Another update has this place. That is certain if the ids reach back to the newest update of
	// base.
	return cell.Lost, place+min(base.count, 1) < int64(len(now.ids))
}

// equals reports whether s is the same version of the object as base.
func (s snapshot) equals(base snapshot) bool {
	return s.exists == base.exists && s.etag == base.etag && s.count == base.count && slices.Equal(s.ids, base.ids)
}
