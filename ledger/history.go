package ledger

import (
	"strings"
	"time"
)

// MaxHistory is how many entries a row keeps.
const MaxHistory = 16

// maxNote bounds an entry's note and LastError, in bytes.
const maxNote = 512

// Entry is one line of a row's history.
type Entry struct {
	At   time.Time `json:"at"`
	What string    `json:"what"`
	Note string    `json:"note,omitzero"`
}

// addEntry puts an entry in front. The old slice is left alone, for rows are
// values.
func (r *Row) addEntry(now time.Time, what, note string) {
	n := min(len(r.History)+1, MaxHistory)
	h := make([]Entry, n)
	h[0] = Entry{At: now, What: what, Note: truncate(note)}
	copy(h[1:], r.History)
	r.History = h
	r.UpdatedAt = now
}

// DiedAt returns when a row that is dead died, or a time after that: that of its
// oldest entry, where the history has forgotten.
func (r *Row) DiedAt() (at time.Time) {
	for _, e := range r.History {
		at = e.At
		if e.What == "dead" {
			break
		}
	}
	return at
}

// truncate bounds a text from outside and keeps it valid UTF-8.
func truncate(s string) string {
	if len(s) > maxNote {
		s = s[:maxNote] + "…"
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
