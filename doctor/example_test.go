package doctor_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/bucket/membucket"
	"github.com/pawlhq/pawl/doctor"
	"github.com/pawlhq/pawl/event"
)

// careless ignores If-None-Match.
type careless struct{ bucket.Store }

func (s careless) Put(ctx context.Context, ref event.Object, o bucket.Object, c bucket.Condition) (string, error) {
	c.IfAbsent = false
	return s.Store.Put(ctx, ref, o, c)
}

// ExampleProve tests a store at the start of a program that uses locks.
func ExampleProve() {
	good := membucket.New(time.Now, []string{"state"})
	fmt.Println(doctor.Prove(context.Background(), good, "state", "locks/", doctor.Locks))
	err := doctor.Prove(context.Background(), careless{good}, "state", "locks/", doctor.Locks)
	fmt.Println(errors.Is(err, bucket.ErrIgnored))
	// Output:
	// <nil>
	// true
}
