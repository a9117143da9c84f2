package sim

import "time"

// doer is something that happens at its time.
type doer interface{ run() }

// doing is a doer of one function.
type doing func()

func (f doing) run() { f() }

type appointment struct {
	at time.Duration
	n  uint32
	do doer
}

// agenda is a heap of what will happen: the earliest first, and of those at one
// time the one that was planned first.
type agenda struct {
	list  []appointment
	count uint32
}

func (a *agenda) before(i, j int) bool {
	x, y := &a.list[i], &a.list[j]
	return x.at < y.at || x.at == y.at && x.n < y.n
}

func (a *agenda) push(at time.Duration, do doer) {
	a.count++
	a.list = append(a.list, appointment{at, a.count, do})
	for i := len(a.list) - 1; i > 0; {
		up := (i - 1) / 2
		if !a.before(i, up) {
			break
		}
		a.list[i], a.list[up] = a.list[up], a.list[i]
		i = up
	}
}

func (a *agenda) pop() appointment {
	first, last := a.list[0], len(a.list)-1
	a.list[0] = a.list[last]
	a.list[last].do = nil
	a.list = a.list[:last]
	for i := 0; ; {
		down := 2*i + 1
		if down >= last {
			break
		}
		if down+1 < last && a.before(down+1, down) {
			down++
		}
		if !a.before(down, i) {
			break
		}
		a.list[i], a.list[down] = a.list[down], a.list[i]
		i = down
	}
	return first
}
