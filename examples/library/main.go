// Command library keeps a copy of each s3://notes/*.txt in capital letters in s3://shouted.
package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"log"
	"os"
	"os/signal"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/bucket/s3bucket"
	"github.com/pawlhq/pawl/source/webhooksource"
	"github.com/pawlhq/pawl/store/sqlite"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx)
	stop()
	if err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) (err error) {
	rows, err := sqlite.Open(ctx, "shout.db")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	// AWS_ENDPOINT_URL and the other variables of the AWS tools configure endpoint and
	// credentials.
	objects, err := s3bucket.New(ctx, s3bucket.Config{PathStyle: true})
	if err != nil {
		return err
	}
	hook, err := webhooksource.New(webhooksource.Config{
		Listen: cmp.Or(os.Getenv("LISTEN"), "127.0.0.1:8081"), Token: os.Getenv("PAWL_WEBHOOK_TOKEN"),
	})
	if err != nil {
		return err
	}
	p, err := pawl.New(pawl.Config{
		Ledger:  rows,
		Objects: objects,
		Sources: []pawl.Source{hook},
		Pipelines: []pawl.Pipeline{{
			Name:    "shout",
			Match:   pawl.Match{Bucket: "notes", Suffix: []string{".txt"}},
			Handler: pawl.HandlerFunc(shout),
			To:      &pawl.Output{Bucket: "shouted"},
		}},
	})
	if err != nil {
		return err
	}
	return p.Run(ctx)
}

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
	out, err := t.Output("text/plain")
	if err != nil {
		return err
	}
	_, err = out.Write(bytes.ToUpper(text))
	return err
}
