// Package linearizable checks that calls on registers are linearizable: each call can have taken effect at
// one instant between its start and its end. Responses may be lost.
//
// Package porcupine searches for an order of these instants. If the search takes too long, the check fails.
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

const openEnd = math.MaxInt64

const checkTimeout = 10 * time.Second

// History has the calls of clients on registers. It is safe for concurrent use.
type History struct {
	start time.Time

	mu    sync.Mutex
	calls map[string][]porcupine.Operation // by register
}

// New returns an empty history.
func New() *History {
	return &History{start: time.Now(), calls: map[string][]porcupine.Operation{}}
}

// Now returns the time of the clock that all clients share.
func (h *History) Now() time.Duration { return time.Since(h.start) }

// Add adds a call on a register. It ignores the end of an [Unknown].
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

// Check returns an error, with the calls, if it finds no valid order in time.
func (h *History) Check() error { return h.check(checkTimeout) }

func (h *History) check(limit time.Duration) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	last := porcupine.Operation{Input: endOp, Call: openEnd - 1, Return: openEnd}
	for register, calls := range h.calls {
		switch verdict, info := porcupine.CheckOperationsVerbose(model, append(calls, last), limit); verdict {
		case porcupine.Ok:
		case porcupine.Illegal:
			return fmt.Errorf("register %s: its %d calls have no valid order; the longest valid order ends before the first call without a number:\n%s",
				register, len(calls), formatCalls(calls, longestOrder(info)))
		default:
			return fmt.Errorf("register %s: the check of %d calls did not end within %s:\n%s", register, len(calls), limit, formatCalls(calls, nil))
		}
	}
	return nil
}

func longestOrder(info porcupine.LinearizationInfo) (best []porcupine.Operation) {
	for _, order := range slices.Concat(info.PartialLinearizationsOperations()...) {
		if len(order) > len(best) {
			best = order
		}
	}
	return best
}

// If there is an order, each line has the call's position in it.
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
