package world

import (
	"container/heap"
	"time"
)

type appointment struct {
	at time.Duration
	n  int
	do func()
}

// agenda is what will happen: the earliest first, and of those at one time the one
// that was planned first.
type agenda struct {
	list  appointments
	count int
}

func (a *agenda) push(at time.Duration, do func()) {
	a.count++
	heap.Push(&a.list, appointment{at, a.count, do})
}

func (a *agenda) pop() appointment { return heap.Pop(&a.list).(appointment) }

type appointments []appointment

func (l appointments) Len() int { return len(l) }
func (l appointments) Less(i, j int) bool {
	return l[i].at < l[j].at || l[i].at == l[j].at && l[i].n < l[j].n
}
func (l appointments) Swap(i, j int) { l[i], l[j] = l[j], l[i] }
func (l *appointments) Push(x any)   { *l = append(*l, x.(appointment)) }
func (l *appointments) Pop() any {
	last := (*l)[len(*l)-1]
	*l = (*l)[:len(*l)-1]
	return last
}
