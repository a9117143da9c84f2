// Command lambda is a function of AWS Lambda that copies s3://notes/*.txt in capital letters to
// s3://shouted.
package main

import (
	"bytes"
	"context"
	"io"
	"log"
	"os"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/awslambda"
	"github.com/pawlhq/pawl/bucket/s3bucket"
	"github.com/pawlhq/pawl/store/dynamo"
)

func main() {
	ctx := context.Background()
	rows, err := dynamo.Open(ctx, os.Getenv("LEDGER")) // dynamodb://TABLE?region=REGION
	if err != nil {
		log.Fatal(err)
	}
	objects, err := s3bucket.New(ctx, s3bucket.Config{PathStyle: true})
	if err != nil {
		log.Fatal(err)
	}
	lambda.Start(&awslambda.Handler{Scheduled: true, Config: pawl.Config{Ledger: rows, Objects: objects, Pipelines: []pawl.Pipeline{{
		Name: "shout", Match: pawl.Match{Bucket: "notes", Suffix: []string{".txt"}}, Handler: pawl.HandlerFunc(shout), To: &pawl.Output{Bucket: "shouted"},
	}}}})
}

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
