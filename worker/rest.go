package worker

import (
	"context"
	"time"
)

// restPage is how many due rows are looked at to tell whether all is settled.
const restPage = 10_000

// AtRest reports that no object of the worker's pipelines waits for anything
// but verification: all are settled or dead, as far as the ledger knows.
func (w *Worker) AtRest(ctx context.Context) (bool, error) {
	w.mu.Lock()
	idle := w.idle
	w.mu.Unlock()
	if !idle {
		return false, nil // no need to ask
	}
	ever := time.Now().AddDate(100, 0, 0)
	for _, p := range w.cfg.Pipelines {
		// Most often the first row tells.
		for _, limit := range []int{1, restPage} {
			rows, err := w.ledger.Due(ctx, p.Name, ever, limit)
			if err != nil {
				return false, err
			}
			for i := range rows {
				if !rows[i].Settled() || rows[i].Held() {
					return false, nil
				}
			}
			if len(rows) < limit {
				break
			}
		}
	}
	return true, nil
}
