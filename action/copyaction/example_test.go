package copyaction_test

import (
	"context"
	"fmt"
	"log"
	"strings"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/action/copyaction"
	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/bucket/membucket"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/source/replaysource"
	"github.com/pawlhq/pawl/store/memory"
)

// Example_mirror mirrors a bucket: the pipeline copies a new object, and removes the copy of a removed object.
func Example_mirror() {
	ctx := context.Background()
	objects := membucket.New(time.Now, []string{"photos", "mirror"})
	for _, at := range []event.Object{{Bucket: "photos", Key: "new.jpg"}, {Bucket: "mirror", Key: "old.jpg"}} {
		content := bucket.Object{Body: strings.NewReader("picture"), Size: 7, ContentType: "image/jpeg"}
		if _, err := objects.Put(ctx, at, content, bucket.Condition{}); err != nil {
			log.Fatal(err)
		}
	}
	notifications := `
		{"account": "a", "action": "PutObject", "bucket": "photos", "object": {"key": "new.jpg"}, "eventTime": "2026-01-02T03:04:05Z"}
		{"account": "a", "action": "DeleteObject", "bucket": "photos", "object": {"key": "old.jpg"}, "eventTime": "2026-01-02T03:04:05Z"}`
	r2, err := replaysource.New(replaysource.Config{Paths: []string{"-"}, Stdin: strings.NewReader(notifications)})
	if err != nil {
		log.Fatal(err)
	}
	mirror, err := copyaction.New(copyaction.Config{})
	if err != nil {
		log.Fatal(err)
	}
	p, err := pawl.New(pawl.Config{
		Ledger: memory.New(), Objects: objects, Sources: []pawl.Source{r2},
		Pipelines: []pawl.Pipeline{{
			Name: "mirror", Match: pawl.Match{Bucket: "photos"}, Handler: mirror, To: &pawl.Output{Bucket: "mirror"},
		}},
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := p.Run(ctx); err != nil {
		log.Fatal(err)
	}
	for info, err := range objects.List(ctx, "mirror", "", "") {
		fmt.Println(info.Key, info.Size, err)
	}
	// Output: new.jpg 7 <nil>
}
