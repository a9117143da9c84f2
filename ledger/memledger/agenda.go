package memledger

import (
	"cmp"
	"container/heap"
	"time"

	"github.com/pawlhq/pawl/ledger"
)

type entry struct {
	row ledger.Row
	due time.Time // zero: not on the agenda
	at  int       // index in the agenda
}

// agenda is a heap of the entries of one pipeline that are due some time, the
// earliest on top.
type agenda []*entry

func (a *agenda) add(e *entry) {
	if !e.due.IsZero() {
		heap.Push(a, e)
	}
}

func (a *agenda) remove(e *entry) {
	if !e.due.IsZero() {
		heap.Remove(a, e.at)
	}
}

// first returns up to limit entries that are due at before, earliest first. They
// leave the heap in turn and come back together: each step costs O(log n).
func (a *agenda) first(before time.Time, limit int) []*entry {
	var first []*entry
	for len(first) < limit && len(*a) > 0 && !(*a)[0].due.After(before) {
		first = append(first, heap.Pop(a).(*entry))
	}
	for _, e := range first {
		heap.Push(a, e)
	}
	return first
}

// Len, Less, Swap, Push and Pop are what container/heap asks for.
func (a agenda) Len() int { return len(a) }

func (a agenda) Less(i, j int) bool {
	return cmp.Or(a[i].due.Compare(a[j].due), a[i].row.RowKey.Compare(a[j].row.RowKey)) < 0
}

func (a agenda) Swap(i, j int) {
	a[i], a[j] = a[j], a[i]
	a[i].at, a[j].at = i, j
}

func (a *agenda) Push(x any) {
	e := x.(*entry)
	e.at = len(*a)
	*a = append(*a, e)
}

func (a *agenda) Pop() any {
	old := *a
	e := old[len(old)-1]
	old[len(old)-1] = nil
	*a = old[:len(old)-1]
	return e
}
