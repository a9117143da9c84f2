package ledger

import (
	"strings"
	"time"
)

// MaxHistory is the maximum number of entries.
const MaxHistory = 16

// maxNote is the maximum size of a note and of LastError, in bytes.
const maxNote = 512

// Entry is one entry of a row's history.
type Entry struct {
	At   time.Time `json:"at"`
	What string    `json:"what"`
	Note string    `json:"note,omitzero"`
}

// Rows are values, so addEntry copies the history.
func (r *Row) addEntry(now time.Time, what, note string) {
	n := min(len(r.History)+1, MaxHistory)
	h := make([]Entry, n)
	h[0] = Entry{At: now, What: what, Note: truncate(note)}
	copy(h[1:], r.History)
	r.History = h
	r.UpdatedAt = now
}

// DiedAt returns when a dead row died, or the time of its oldest entry if that is unknown.
func (r *Row) DiedAt() (at time.Time) {
	for _, e := range r.History {
		at = e.At
		if e.What == "dead" {
			break
		}
	}
	return at
}

func truncate(s string) string {
	if len(s) > maxNote {
		s = s[:maxNote] + "…"
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
