package pawl_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/bucket/membucket"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/store/memory"
)

// An audit compares the bucket with the ledger. Here the notification of a day-old object was lost: the audit finds
// it, and the next Run processes it.
func ExamplePawl_Audit() {
	ctx := context.Background()
	yesterday := time.Now().Add(-24 * time.Hour)
	objects := membucket.New(func() time.Time { return yesterday }, []string{"notes"})
	_, err := objects.Put(ctx, event.Object{Bucket: "notes", Key: "lost.txt"}, bucket.Object{Body: strings.NewReader("hi"), Size: 2}, bucket.Condition{})
	must(err)
	ctx, stop := context.WithCancel(ctx)
	read := func(_ context.Context, t *pawl.Task) error {
		fmt.Println("reading", t.Object)
		stop()
		return nil
	}
	p, err := pawl.New(pawl.Config{
		Ledger: memory.New(), Objects: objects, Logger: slog.New(slog.DiscardHandler),
		SweepInterval: 10 * time.Millisecond,
		Pipelines:     []pawl.Pipeline{{Name: "read", Match: pawl.Match{Bucket: "notes"}, Handler: pawl.HandlerFunc(read)}},
	})
	must(err)
	report, err := p.Audit(ctx, pawl.AuditOptions{})
	must(err)
	fmt.Println("lost", report.Total().LostCreations)
	must(p.Run(ctx))
	// Output:
	// lost 1
	// reading s3://notes/lost.txt
}
