package lock

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/pawlhq/pawl/cell"
)

// The names of an update's metadata. They are carried forward with the user's.
const (
	metaCount = "pawl-update"     // how many updates the object has seen
	metaIDs   = "pawl-update-ids" // of the last of them, the newest first
	metaFence = "pawl-lock-token" // the highest fencing token of an update
)

const (
	// maxIDs ids take 815 bytes of what a store allows. Fewer than minIDs would
	// leave too many updates unsure.
	maxIDs, minIDs = 48, 8
	// idSize is 64 random bits in hex.
	idSize = 16
	// maxMetadata is what an object's metadata may take in bytes, the names with
	// their prefix. https://docs.aws.amazon.com/AmazonS3/latest/userguide/UsingMetadata.html
	maxMetadata    = 2 << 10
	metadataPrefix = "x-amz-meta-"
)

// lineage is what the metadata of an object say of its updates.
type lineage struct {
	count int64 // 0: it was not written by an update
	ids   []string
	fence int64
}

func lineageOf(metadata map[string]string) lineage {
	var l lineage
	l.fence, _ = strconv.ParseInt(metadata[metaFence], 10, 64) // 0 if it is no number
	count, err := strconv.ParseInt(metadata[metaCount], 10, 64)
	ids := strings.Split(metadata[metaIDs], ",")
	if err != nil || count < 1 || ids[0] == "" || int64(len(ids)) > count {
		return l
	}
	l.count, l.ids = count, ids
	return l
}

// with is the lineage after one more update.
func (l lineage) with(id string, fence int64) lineage {
	ids := slices.Concat([]string{id}, l.ids)
	return lineage{l.count + 1, ids[:min(len(ids), maxIDs)], max(l.fence, fence)}
}

// follows reports that a later lineage goes on from an earlier one, as far as it
// still holds it.
func (l lineage) follows(base lineage) bool {
	at := l.count - base.count // where the newest of base must be
	return base.count == 0 || at >= int64(len(l.ids)) || l.ids[at] == base.ids[0]
}

// metadata is the user's, with the lineage: as many of its ids as fit. It returns
// false if too few do.
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

// ownMetadata is a copy of the user's own metadata.
func userMetadata(metadata map[string]string) map[string]string {
	m := make(map[string]string, len(metadata)+3)
	maps.Copy(m, metadata)
	for _, name := range []string{metaCount, metaIDs, metaFence} {
		delete(m, name)
	}
	return m
}

// snapshot is an object as it was read.
type snapshot struct {
	exists bool
	etag   string
	lineage
}

// judge tells the outcome of an update that was sent on the condition that the
// object is base, from what is there now.
//
// It is not known if the lineage has grown beyond what it holds. Where it was
// broken, by another program that does not carry it forward, or by a deletion, a
// refusal by the store is believed; without one it is not known either.
func classifyUpdate(now, base snapshot, id string, refused bool) (f cell.Outcome, known bool) {
	place := now.count - base.count - 1 // of this update among the ids, if it landed
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
	// Then another's is in its place, and after it comes what was the newest of base.
	return cell.Lost, place+min(base.count, 1) < int64(len(now.ids))
}

// is reports that nothing has changed.
func (s snapshot) equals(base snapshot) bool {
	return s.exists == base.exists && s.etag == base.etag && s.count == base.count && slices.Equal(s.ids, base.ids)
}
