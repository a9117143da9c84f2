package sqssource_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/source/sqssource"
	"github.com/pawlhq/pawl/store/memory"
)

// Example processes the messages of a queue until ctx ends. The source deletes a message when the ledger has its
// events. On AWS, the URL is that of the queue, and credentials come from the SDK's chain.
func Example() {
	ctx, stop := context.WithCancel(context.Background())
	os.Setenv("AWS_ACCESS_KEY_ID", "example")
	os.Setenv("AWS_SECRET_ACCESS_KEY", "example")
	queue := httptest.NewServer(oneMessage(stop))
	defer queue.Close()
	messages, err := sqssource.New(ctx, sqssource.Config{URL: queue.URL + "/123456789012/exports", Dialect: event.AWS})
	if err != nil {
		panic(err)
	}
	load := func(_ context.Context, t *pawl.Task) error {
		fmt.Println("loading", t.Object)
		return nil
	}
	p, err := pawl.New(pawl.Config{
		Ledger: memory.New(), Sources: []pawl.Source{messages},
		Pipelines: []pawl.Pipeline{{
			Name: "load", Match: pawl.Match{Bucket: "exports"}, Order: pawl.EventOrder, Handler: pawl.HandlerFunc(load),
		}},
	})
	if err != nil {
		panic(err)
	}
	if err := p.Run(ctx); err != nil {
		panic(err)
	}
	// Output:
	// loading s3://exports/march.csv
	// deleted message
}

// oneMessage is a queue in memory with one message. It calls deleted when the message is deleted.
func oneMessage(deleted func()) http.Handler {
	const notification = `{"Records": [{"eventVersion": "2.1", "eventSource": "aws:s3", "eventTime": "2026-03-14T15:09:26Z", "eventName": "ObjectCreated:Put",
		"s3": {"bucket": {"name": "exports"}, "object": {"key": "march.csv", "size": 12, "sequencer": "0061F5BD3C1A2B4D5E"}}}]}`
	var received atomic.Bool
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(err)
		}
		answer := map[string]any{}
		switch r.Header.Get("X-Amz-Target") {
		case "AmazonSQS.ReceiveMessage":
			if received.Swap(true) {
				<-r.Context().Done() // long polling
				return
			}
			answer["Messages"] = []map[string]string{{"MessageId": "1", "ReceiptHandle": "r1", "Body": notification}}
		case "AmazonSQS.DeleteMessageBatch":
			answer["Successful"] = []map[string]string{{"Id": "0"}}
			if strings.Contains(string(body), "r1") { // the source also tests its permission with an invalid handle
				fmt.Println("deleted message")
				deleted()
			}
		}
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			panic(err)
		}
	})
}
