package bucket_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"strings"
	"time"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/bucket/membucket"
	"github.com/pawlhq/pawl/event"
)

// Example writes an output that two attempts pinned. The second attempt is too late, and must pin it again.
func Example() {
	ctx := context.Background()
	store := membucket.New(time.Now, []string{"reports"})
	report := event.Object{Bucket: "reports", Key: "march.txt"}
	publish := func(o *bucket.Output, text string) error {
		stamp := bucket.Stamp{Source: "s3://exports/march.csv", Nonce: text}
		body := func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil }
		_, err := o.Publish(ctx, stamp, body, int64(len(text)), "text/plain")
		return err
	}
	first, err := bucket.Pin(ctx, store, report)
	if err != nil {
		log.Fatal(err)
	}
	second, err := bucket.Pin(ctx, store, report)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(publish(first, "new"))
	fmt.Println(errors.Is(publish(second, "old"), bucket.ErrOutputChanged))
	_, content, err := store.Get(ctx, report)
	if err != nil {
		log.Fatal(err)
	}
	text, err := io.ReadAll(content)
	fmt.Println(string(text), err)
	// Output:
	// <nil>
	// true
	// new <nil>
}
