package archive_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"time"

	"github.com/pawlhq/pawl/archive"
	"github.com/pawlhq/pawl/archive/archivetest"
	"github.com/pawlhq/pawl/archive/encode"
	"github.com/pawlhq/pawl/bucket/membucket"
	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/store/memory"
)

// Both the stream and the bucket are in memory. For Kinesis, use kinesisstream, s3bucket, and
// store/sqlite or store/postgres.
func ExampleRunner() {
	ctx, stop := context.WithCancel(context.Background())
	stream := archivetest.NewFake(1)
	for _, text := range []string{"one", "two", "three"} {
		if _, err := stream.Put(ctx, "shardId-000000000000", "key", []byte(text)); err != nil {
			log.Fatal(err)
		}
	}
	clicks, err := archive.New(archive.Config{
		Name: "clicks", Bucket: "lake", Prefix: "clicks/", Limits: archive.Limits{FlushInterval: 100 * time.Millisecond},
		Stream: stream, Store: membucket.New(time.Now, []string{"lake"}), Registers: ledger.NewRows(memory.New()), Codec: encode.Codec{},
		Logger: slog.New(slog.DiscardHandler),
		Observe: func(shard string, o archive.Planned) {
			fmt.Println(shard, "stored", o.Count)
			stop()
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	runner := archive.Runner{Archives: []*archive.Archive{clicks}}
	if err := runner.Run(ctx); err != nil {
		log.Fatal(err)
	}
	// Output: shardId-000000000000 stored 3
}
