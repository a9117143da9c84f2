package ledger

import (
	"strings"
	"time"
)

// MaxHistory is the maximum number of history entries of a row.
const MaxHistory = 16

// maxNote is the maximum size of a note and of LastError, in bytes.
const maxNote = 512

// Entry is one entry of a row's history.
type Entry struct {
	At   time.Time `json:"at"`
	What string    `json:"what"`
	Note string    `json:"note,omitzero"`
}

// addEntry prepends an entry. It copies the history, because rows are values.
func (r *Row) addEntry(now time.Time, what, note string) {
	n := min(len(r.History)+1, MaxHistory)
	h := make([]Entry, n)
	h[0] = Entry{At: now, What: what, Note: truncate(note)}
	copy(h[1:], r.History)
	r.History = h
	r.UpdatedAt = now
}

// DiedAt returns when a dead row died. If the history no longer has that entry, it returns
// the time of the oldest entry.
func (r *Row) DiedAt() (at time.Time) {
	for _, e := range r.History {
		at = e.At
		if e.What == "dead" {
			break
		}
	}
	return at
}

// truncate limits the size of a text, and replaces invalid UTF-8.
func truncate(s string) string {
	if len(s) > maxNote {
		s = s[:maxNote] + "…"
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
