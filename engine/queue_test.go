package engine

import "testing"

func TestQueueNeverEmpty(t *testing.T) {
	q := queue{which: ready}
	entries := make([]*entry, 10)
	for i := range entries {
		entries[i] = &entry{}
	}
	push := func(i int) { q.push(entries[i%len(entries)]) }
	for i := range 5 {
		push(i)
		push(i) // is already queued
	}
	for i := range 10_000 {
		push(i + 5)
		if q.peek() != entries[i%len(entries)] {
			t.Fatalf("entry %d is not next", i)
		}
		if en := q.pop(); en != entries[i%len(entries)] || en.queued[ready] {
			t.Fatalf("pop %d is out of order", i)
		}
	}
	if cap(q.items) > 4*len(entries) {
		t.Errorf("a queue of 5 entries has room for %d", cap(q.items))
	}
	for range 5 {
		q.pop()
	}
	if q.pop() != nil || q.peek() != nil || !q.empty() {
		t.Error("the queue is not empty at the end")
	}
}
