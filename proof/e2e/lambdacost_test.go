//go:build unix

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/awslambda"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/proof/servertest"
	"github.com/pawlhq/pawl/store/dynamo"
)

func TestLambdaCost(t *testing.T) {
	t.Parallel()
	server := servertest.DynamoDB(t)
	direct := server.NewTable()
	if err := dynamo.Create(t.Context(), direct); err != nil {
		t.Fatal(err)
	}
	meter := newDynamoMeter(t, server.Endpoint)
	records, err := dynamo.Open(t.Context(), strings.Replace(direct, server.Endpoint, meter.url, 1))
	if err != nil {
		t.Fatal(err)
	}
	h := &awslambda.Handler{Scheduled: true, Dialect: event.AWS, Config: pawl.Config{Ledger: records, Logger: logTo(t), Pipelines: []pawl.Pipeline{{
		Name: "noop", Match: pawl.Match{Bucket: "inputs"}, Order: pawl.EventOrder,
		Handler: pawl.HandlerFunc(func(context.Context, *pawl.Task) error { return nil }),
	}}}}
	for _, step := range []struct {
		name, payload string
		most          cost
	}{
		{"first sweep of a table", `{"pawl":"sweep"}`, cost{10, 1, 0}},
		{"first object of a process", fmt.Sprintf(s3Event, "first"), cost{4, 3, 2}},
		{"new object", fmt.Sprintf(s3Event, "a"), cost{2, 2, 2}},
		{"duplicate in another invocation", fmt.Sprintf(s3Event, "a"), cost{1, 1, 0}},
		{"overwrite in another invocation", strings.Replace(fmt.Sprintf(s3Event, "a"), "81E5", "81E6", 1), cost{3, 3, 2}},
		{"removal in another invocation", strings.NewReplacer("81E5", "81E7", "ObjectCreated:Put", "ObjectRemoved:Delete").Replace(fmt.Sprintf(s3Event, "a")), cost{3, 3, 2}},
		{"sweep without work", `{"pawl":"sweep"}`, cost{10, 1, 0}},
	} {
		meter.takeCost()
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		_, err := h.Invoke(ctx, []byte(step.payload))
		stop()
		got := meter.takeCost()
		t.Logf("%-35s %d requests, %d units of the table, %d of the index", step.name, got.requests, got.table, got.index)
		if err != nil || got.requests > step.most.requests || got.table > step.most.table || got.index > step.most.index {
			t.Errorf("%s: %+v, want at most %+v: %v", step.name, got, step.most, err)
		}
	}
}
