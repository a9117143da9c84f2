package engine

// An entry can be in both queues.
const (
	dirty = iota
	ready
	queues
)

type queue struct {
	which int
	items []*entry
}

func (q *queue) push(en *entry) {
	if !en.queued[q.which] {
		en.queued[q.which] = true
		q.items = append(q.items, en)
	}
}

// append drops popped entries when it moves the slice.
func (q *queue) pop() *entry {
	en := q.peek()
	if en != nil {
		q.items[0] = nil
		q.items = q.items[1:]
		en.queued[q.which] = false
	}
	return en
}

func (q *queue) peek() *entry {
	if q.empty() {
		return nil
	}
	return q.items[0]
}

func (q *queue) empty() bool { return len(q.items) == 0 }
