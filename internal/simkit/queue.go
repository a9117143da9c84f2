package simkit

import "time"

// Event is an event of a world.
type Event interface{ Run() }

// Func is an event that calls a function.
type Func func()

// Run implements [Event].
func (f Func) Run() { f() }

// Entry is an event in a queue.
type Entry struct {
	At    time.Duration
	N     uint32 // orders entries at the same time
	Event Event
}

// Queue is a heap with the earliest event first. Events at the same time keep their order.
type Queue struct {
	Entries []Entry
	added   uint32
}

func (q *Queue) before(i, j int) bool {
	x, y := &q.Entries[i], &q.Entries[j]
	return x.At < y.At || x.At == y.At && x.N < y.N
}

// Push adds an event.
func (q *Queue) Push(at time.Duration, e Event) {
	q.added++
	q.Entries = append(q.Entries, Entry{at, q.added, e})
	for i := len(q.Entries) - 1; i > 0; {
		up := (i - 1) / 2
		if !q.before(i, up) {
			break
		}
		q.Entries[i], q.Entries[up] = q.Entries[up], q.Entries[i]
		i = up
	}
}

// Pop removes and returns the first entry.
func (q *Queue) Pop() Entry {
	first, last := q.Entries[0], len(q.Entries)-1
	q.Entries[0] = q.Entries[last]
	q.Entries[last].Event = nil
	q.Entries = q.Entries[:last]
	for i := 0; ; {
		down := 2*i + 1
		if down >= last {
			break
		}
		if down+1 < last && q.before(down+1, down) {
			down++
		}
		if !q.before(down, i) {
			break
		}
		q.Entries[i], q.Entries[down] = q.Entries[down], q.Entries[i]
		i = down
	}
	return first
}
