// Package linearizable checks that a store is made of registers: whatever
// several clients do to it at once, and whatever answers get lost, what they see
// must be what they would have seen had each call been made in an instant of its
// own between its beginning and its end. That is called linearizable.
//
// The search for such an order is porcupine's. A history for which it takes too
// long fails.
package linearizable

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"
)

// never is the end of a call that may still take effect when all is over.
const openEnd = math.MaxInt64

// patience is how long a register's order is searched for. It takes a few
// milliseconds.
const checkTimeout = 10 * time.Second

// History is what clients did to registers, and when. It is safe for concurrent
// use.
type History struct {
	start time.Time

	mu    sync.Mutex
	calls map[string][]porcupine.Operation // by register
}

// New returns an empty history. Every register holds nothing.
func New() *History {
	return &History{start: time.Now(), calls: map[string][]porcupine.Operation{}}
}

// Now returns the time by the one clock that all clients share.
func (h *History) Now() time.Duration { return time.Since(h.start) }

// Add tells of a call on a register, from its beginning to its end. That of an
// [Unknown] does not count.
func (h *History) Add(client int, register string, from, to time.Duration, op Op) {
	h.mu.Lock()
	defer h.mu.Unlock()
	o := porcupine.Operation{
		ClientId: client, Input: op, Call: int64(from), Return: int64(to), Metadata: len(h.calls[register]),
	}
	if op.open {
		o.Return = openEnd
	}
	h.calls[register] = append(h.calls[register], o)
}

var model = porcupine.Model{
	Init: func() any { return "" },
	Step: func(now, op, _ any) (bool, any) {
		next, ok := op.(Op).step(now.(string))
		return ok, next
	},
}

// Check returns an error if there is a register whose calls have no order, or
// none that was found in time. The error tells its history.
func (h *History) Check() error { return h.check(checkTimeout) }

func (h *History) check(limit time.Duration) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	last := porcupine.Operation{Input: endOp, Call: openEnd - 1, Return: openEnd}
	for register, calls := range h.calls {
		switch verdict, info := porcupine.CheckOperationsVerbose(model, append(calls, last), limit); verdict {
		case porcupine.Ok:
		case porcupine.Illegal:
			return fmt.Errorf("register %s: its %d calls have no order in which they make sense; the first without a number is where the longest ends:\n%s",
				register, len(calls), formatCalls(calls, longestOrder(info)))
		default:
			return fmt.Errorf("register %s: no verdict on %d calls within %s:\n%s", register, len(calls), limit, formatCalls(calls, nil))
		}
	}
	return nil
}

// longest returns the longest order of calls that makes sense.
func longestOrder(info porcupine.LinearizationInfo) (best []porcupine.Operation) {
	for _, order := range slices.Concat(info.PartialLinearizationsOperations()...) {
		if len(order) > len(best) {
			best = order
		}
	}
	return best
}

// tell prints the calls in the order of their beginnings, each with its place in
// the order that was found, if it has one.
func formatCalls(calls, order []porcupine.Operation) string {
	place := map[any]int{}
	for i, o := range order {
		place[o.Metadata] = i + 1
	}
	calls = slices.SortedFunc(slices.Values(calls), func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
	var b strings.Builder
	for _, o := range calls {
		at := "  -"
		if n := place[o.Metadata]; n > 0 {
			at = fmt.Sprintf("%3d", n)
		}
		to := time.Duration(o.Return).String()
		if o.Return == openEnd {
			to = "never"
		}
		fmt.Fprintf(&b, "%s  %12s to %12s  client %d: %s\n", at, time.Duration(o.Call), to, o.ClientId, o.Input.(Op).text)
	}
	return b.String()
}
