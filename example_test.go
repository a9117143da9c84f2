package pawl_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"strings"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/bucket/membucket"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/source/replaysource"
	"github.com/pawlhq/pawl/store/memory"
)

// A notification of an upload, which the store may send twice.
const notification = `{"Records": [{
	"eventVersion": "2.1", "eventSource": "aws:s3", "eventTime": "2026-03-14T15:09:26Z", "eventName": "ObjectCreated:Put",
	"s3": {"bucket": {"name": "notes"}, "object": {"key": "hello.txt", "size": 12, "sequencer": "0061F5BD3C1A2B4D5E"}}}]}`

// shout writes a note in capital letters.
func shout(ctx context.Context, t *pawl.Task) error {
	note, err := t.Open(ctx)
	if err != nil {
		return err
	}
	defer note.Close()
	text, err := io.ReadAll(note)
	if err != nil {
		return err
	}
	fmt.Println("shouting", t.Object)
	out, err := t.Output("text/plain")
	if err != nil {
		return err
	}
	_, err = out.Write(bytes.ToUpper(text))
	return err
}

// This program writes each note of one bucket to another bucket, in capital letters. With
// s3bucket, sqlite and webhooksource it works with a real store, and survives crashes.
func Example() {
	ctx := context.Background()
	objects := membucket.New(time.Now, []string{"notes", "shouted"})
	hello := bucket.Object{Body: strings.NewReader("hello, world"), Size: 12}
	if _, err := objects.Put(ctx, event.Object{Bucket: "notes", Key: "hello.txt"}, hello, bucket.Condition{}); err != nil {
		log.Fatal(err)
	}
	twice, err := replaysource.New(replaysource.Config{Paths: []string{"-"}, Stdin: strings.NewReader(notification + notification)})
	if err != nil {
		log.Fatal(err)
	}

	p, err := pawl.New(pawl.Config{
		Ledger:  memory.New(),
		Objects: objects,
		Sources: []pawl.Source{twice},
		Pipelines: []pawl.Pipeline{{
			Name:    "shout",
			Match:   pawl.Match{Bucket: "notes", Suffix: []string{".txt"}},
			Handler: pawl.HandlerFunc(shout),
			To:      &pawl.Output{Bucket: "shouted"},
		}},
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := p.Run(ctx); err != nil {
		log.Fatal(err)
	}

	_, louder, err := objects.Get(ctx, event.Object{Bucket: "shouted", Key: "hello.txt"})
	if err != nil {
		log.Fatal(err)
	}
	text, err := io.ReadAll(louder)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s\n", text)
	// Output:
	// shouting s3://notes/hello.txt
	// HELLO, WORLD
}
