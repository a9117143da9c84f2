package worker_test

import (
	"context"
	"testing"
	"time"

	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/store/storetest"
	"github.com/pawlhq/pawl/worker"
)

const horizon = 15 * time.Minute // as in ledger.DefaultPolicy

func TestLostLedgerAnswers(t *testing.T) {
	for _, fault := range storetest.Faults {
		t.Run(fault.String(), func(t *testing.T) {
			inWorld(t, func(w *world) {
				handled := 0
				n := w.start(toOut(func(ctx context.Context, task *worker.Task) error {
					handled++
					return upper(ctx, task)
				}), func(c *worker.Config) {
					c.Ledger = ledger.NewRows(storetest.NewFaulty(w.rows.Records(), func(call int) storetest.Fault {
						if call%2 == 1 { // after the pipeline record: the claim, and the request after its lost answer
							return fault
						}
						return storetest.None
					}))
				})
				answer := n.deliver(w.put("a", "one"))
				w.pass(time.Minute)
				answer.wantAck(w)
				w.wantSettled("a")
				w.wantOutput("a", "ONE")
				if r := w.row("a"); handled != 1 || r.Attempts != 0 || r.Doubt {
					t.Errorf("handled %d times, attempts %d, doubt %v", handled, r.Attempts, r.Doubt)
				}
				if warned := len(w.log.having("WARN", "unclear answer")) > 0; warned != (fault != storetest.None) {
					t.Errorf("warned: %v", warned)
				}
			})
		})
	}
}
