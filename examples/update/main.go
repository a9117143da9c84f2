// Command update counts the words of its command line in an object. Concurrent processes lose no
// word and count none twice:
//
//	go run ./examples/update BUCKET word word
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/pawlhq/pawl/bucket/s3bucket"
	"github.com/pawlhq/pawl/lock"
)

type tally struct {
	Words map[string]int `json:"words"`
}

func main() {
	if len(os.Args) < 3 {
		log.Fatal("usage: update BUCKET WORD...")
	}
	if err := run(context.Background(), os.Args[1], os.Args[2:]); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, name string, words []string) error {
	objects, err := s3bucket.New(ctx, s3bucket.Config{PathStyle: true})
	if err != nil {
		return err
	}
	b, err := lock.Open(ctx, objects, name, "tally/")
	if err != nil {
		return err
	}
	// UpdateJSON calls count again, with the new content, if another write came first.
	count := func(_ context.Context, t *tally) error {
		if t.Words == nil {
			t.Words = map[string]int{}
		}
		for _, w := range words {
			t.Words[w]++
		}
		return nil
	}
	done, err := lock.UpdateJSON(ctx, b, "tally/words.json", count, lock.UpdateConfig{Create: true})
	if err != nil {
		return err
	}
	fmt.Printf("%s\n", done.Content.Body)
	return nil
}
