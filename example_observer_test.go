package pawl_test

import (
	"context"
	"fmt"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/store/memory"
)

// counter counts notices. All calls come from one goroutine.
type counter map[engine.Kind]int

// Observe implements pawl.Observer.
func (c counter) Observe(n pawl.Notice) { c[n.Kind]++ }

// An observer receives a notice of each step, for metrics. For Prometheus, use package metrics/prom.
func Example_observer() {
	seen := counter{}
	p, err := pawl.New(pawl.Config{
		Ledger: memory.New(), Sources: []pawl.Source{&message{payload: notification}}, Observer: seen,
		Retry: pawl.Retry{Base: time.Millisecond},
		Pipelines: []pawl.Pipeline{{
			Name: "load", Match: pawl.Match{Bucket: "notes"}, Order: pawl.EventOrder, Handler: pawl.HandlerFunc(load),
		}},
	})
	must(err)
	must(p.Run(context.Background()))
	fmt.Println("events", seen[engine.Raised], "attempts", seen[engine.Claimed],
		"failed", seen[engine.AttemptFailed], "committed", seen[engine.Committed])
	// Output:
	// loading s3://notes/hello.txt attempt 1
	// loading s3://notes/hello.txt attempt 2
	// events 1 attempts 2 failed 1 committed 1
}
