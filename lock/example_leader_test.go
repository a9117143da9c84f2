package lock_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/pawlhq/pawl/bucket/membucket"
	"github.com/pawlhq/pawl/lock"
)

// ExampleMutex_Lead elects one of several processes. Its work ends with ctx when it loses the lease, and another
// process continues.
func ExampleMutex_Lead() {
	ctx := context.Background()
	b, err := lock.Open(ctx, membucket.New(time.Now, []string{"state"}), "state", "leaders/")
	if err != nil {
		log.Fatal(err)
	}
	m, err := b.Mutex("leaders/scheduler", lock.Config{Owner: "host-1"})
	if err != nil {
		log.Fatal(err)
	}
	err = m.Lead(ctx, func(ctx context.Context, _ int64) error {
		who, err := b.Show(ctx, "leaders/scheduler")
		fmt.Println(who.State, who.Owner)
		return err
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output: held host-1
}
