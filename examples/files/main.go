// Command files lets users upload files to s3://uploads and keeps an index of them.
package main

import (
	"context"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/pawlhq/pawl/bucket/s3bucket"
	"github.com/pawlhq/pawl/files/server"
	"github.com/pawlhq/pawl/source"
	"github.com/pawlhq/pawl/source/webhooksource"
	"github.com/pawlhq/pawl/store/sqlite"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	index := must(sqlite.Open(ctx, "uploads.db"))
	files := must(server.New(server.Config{
		Index: index, Bucket: "uploads", Prefix: "files/", Listen: os.Getenv("API"),
		Store:  must(s3bucket.New(ctx, s3bucket.Config{PathStyle: true})), // uses AWS_ENDPOINT_URL and other AWS variables
		Secret: []byte(os.Getenv("FILES_SECRET")),                         // at least 32 bytes, as for "pawl files token"
		Sources: []source.Source{must(webhooksource.New(webhooksource.Config{
			Listen: os.Getenv("LISTEN"), Token: os.Getenv("PAWL_WEBHOOK_TOKEN"),
		}))},
	}))
	err := files.Run(ctx)
	stop()
	must(0, index.Close())
	must(0, err)
}

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}
