package lock

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/pawlhq/pawl/cell"
)

const (
	metaCount = "pawl-update"
	metaIDs   = "pawl-update-ids" // newest first
	metaFence = "pawl-lock-token" // highest token
)

const (
	// maxIDs ids take 815 bytes of metadata. With fewer than minIDs, too many outcomes would be
	// unknown.
	maxIDs, minIDs = 48, 8
	idSize         = 16 // 64 random bits in hex
	// maxMetadata is in bytes, including the prefixes of the names.
	// https://docs.aws.amazon.com/AmazonS3/latest/userguide/UsingMetadata.html
	maxMetadata    = 2 << 10
	metadataPrefix = "x-amz-meta-"
)

type lineage struct {
	count int64 // 0 if no update wrote the object
	ids   []string
	fence int64
}

func lineageOf(metadata map[string]string) lineage {
	var l lineage
	l.fence, _ = strconv.ParseInt(metadata[metaFence], 10, 64)
	count, err := strconv.ParseInt(metadata[metaCount], 10, 64)
	ids := strings.Split(metadata[metaIDs], ",")
	if err != nil || count < 1 || ids[0] == "" || int64(len(ids)) > count {
		return l
	}
	l.count, l.ids = count, ids
	return l
}

func (l lineage) with(id string, fence int64) lineage {
	ids := slices.Concat([]string{id}, l.ids)
	return lineage{l.count + 1, ids[:min(len(ids), maxIDs)], max(l.fence, fence)}
}

// follows reports whether l continues base, as far as the ids show.
func (l lineage) follows(base lineage) bool {
	at := l.count - base.count // index of the newest id of base
	return base.count == 0 || at >= int64(len(l.ids)) || l.ids[at] == base.ids[0]
}

// metadata adds as many ids as fit, or reports false if fewer than minIDs fit.
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

// classifyUpdate returns the outcome of an update that replaces base. The outcome is unknown if
// more updates followed than the lineage has ids. If the lineage is broken, the outcome is known
// only if the store refused the update.
func classifyUpdate(now, base snapshot, id string, refused bool) (f cell.Outcome, known bool) {
	place := now.count - base.count - 1 // index of this update's id, if it landed
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
	// If the ids reach back to the newest update of base, another update has this update's place.
	return cell.Lost, place+min(base.count, 1) < int64(len(now.ids))
}

func (s snapshot) equals(base snapshot) bool {
	return s.exists == base.exists && s.etag == base.etag && s.count == base.count && slices.Equal(s.ids, base.ids)
}
