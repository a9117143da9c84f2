package lock_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/pawlhq/pawl/bucket/membucket"
	"github.com/pawlhq/pawl/lock"
)

// Example runs code while it holds a lock, and updates an object under the lock's token.
func Example() {
	ctx := context.Background()
	store := membucket.New(time.Now, []string{"state"}) // or s3bucket.New

	b, err := lock.Open(ctx, store, "state", "locks/")
	if err != nil {
		log.Fatal(err)
	}
	m, err := b.Mutex("locks/deploy", lock.Config{Reason: "release 7"})
	if err != nil {
		log.Fatal(err)
	}
	l, err := m.Acquire(ctx)
	if err != nil {
		log.Fatal(err)
	}
	deployed := func(_ context.Context, c lock.Content) (lock.Content, error) {
		c.Body = append(c.Body, "release 7\n"...)
		return c, nil
	}
	done, err := b.Update(l.Context(), "deployed.txt", deployed, lock.UpdateConfig{Create: true, Fence: l.Token()})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(string(done.Content.Body))
	if err := l.Release(ctx); err != nil {
		log.Fatal(err)
	}
	who, err := b.Show(ctx, "locks/deploy")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(who.State, who.Reason)
	// Output:
	// release 7
	// released release 7
}
