package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/store/memory"
)

// A permanent error ends the attempts at this version of the object, which is then dead until it changes or an
// operator redrives it. Any other error leads to another attempt, up to Retry.Attempts.
func ExamplePermanent() {
	parse := func(_ context.Context, t *pawl.Task) error {
		fmt.Println("parsing", t.Object)
		return pawl.Permanent(errors.New("not a table"))
	}
	p, err := pawl.New(pawl.Config{
		Ledger: memory.New(), Sources: []pawl.Source{&message{payload: notification}}, Logger: slog.New(slog.DiscardHandler),
		Pipelines: []pawl.Pipeline{{
			Name: "parse", Match: pawl.Match{Bucket: "notes"}, Order: pawl.EventOrder, Handler: pawl.HandlerFunc(parse),
		}},
	})
	must(err)
	must(p.Run(context.Background()))
	fmt.Println("dead", p.Stats().Died)
	// Output:
	// parsing s3://notes/hello.txt
	// dead 1
}
