//go:build unix

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/proof/servertest"
	"github.com/pawlhq/pawl/source"
	"github.com/pawlhq/pawl/store/dynamo"
)

type cost struct{ requests, table, index int }

func TestDynamoDBCost(t *testing.T) {
	t.Parallel()
	server := servertest.DynamoDB(t)
	direct := server.NewTable()
	if err := dynamo.Create(t.Context(), direct); err != nil {
		t.Fatal(err)
	}
	meter := newDynamoMeter(t, server.Endpoint)
	table := strings.Replace(direct, server.Endpoint, meter.url, 1)
	events := []struct {
		name           string
		key            string
		kind           string
		sequencer      int
		known, unknown cost // at most
	}{
		{"first of its pipeline and process", "k0", "ObjectCreated:Put", 2, cost{3, 3, 2}, cost{3, 3, 2}},
		{"new object", "k", "ObjectCreated:Put", 2, cost{2, 2, 2}, cost{3, 3, 2}},
		{"duplicate", "k", "ObjectCreated:Put", 2, cost{0, 0, 0}, cost{2, 2, 0}},
		{"stale", "k", "ObjectCreated:Put", 1, cost{0, 0, 0}, cost{2, 2, 0}},
		{"overwrite", "k", "ObjectCreated:Put", 3, cost{2, 2, 2}, cost{4, 4, 2}},
		{"removal", "k", "ObjectRemoved:Delete", 4, cost{2, 2, 2}, cost{4, 4, 2}},
	}
	for _, fresh := range []bool{false, true} {
		source := &costSource{meter: meter}
		for _, e := range events {
			const form = `{"Records":[{"eventVersion":"2.1","eventSource":"aws:s3","eventTime":"2026-01-02T03:04:05.000Z","eventName":%q,
				"s3":{"s3SchemaVersion":"1.0","bucket":{"name":"photos"},"object":{"key":"%s-%v","size":5,"eTag":"x%d","sequencer":"%016X"}}}]}`
			source.payloads = append(source.payloads, fmt.Sprintf(form, e.kind, e.key, fresh, e.sequencer, e.sequencer))
			if fresh {
				runCostSource(t, table, source)
				source.payloads = nil
			}
		}
		if !fresh {
			runCostSource(t, table, source)
		}
		for i, e := range events {
			most := e.known
			if fresh {
				most = e.unknown
			}
			got := source.costs[i]
			t.Logf("%-35s new process: %-5v %d requests, %d units of the table, %d of the index", e.name, fresh, got.requests, got.table, got.index)
			if got.requests > most.requests || got.table > most.table || got.index > most.index {
				t.Errorf("%s, new process: %v: %+v, want at most %+v", e.name, fresh, got, most)
			}
		}
	}
}

func runCostSource(t *testing.T, table string, from *costSource) {
	t.Helper()
	records, err := dynamo.Open(t.Context(), table)
	if err != nil {
		t.Fatal(err)
	}
	p, err := pawl.New(pawl.Config{
		Ledger: records, Sources: []pawl.Source{from}, NoSweep: true, Ack: pawl.AckSettled, Logger: logTo(t),
		Pipelines: []pawl.Pipeline{{
			Name: "noop", Match: pawl.Match{Bucket: "photos"}, Order: pawl.EventOrder,
			Handler: pawl.HandlerFunc(func(context.Context, *pawl.Task) error { return nil }),
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
}

type costSource struct {
	payloads []string
	meter    *dynamoMeter
	costs    []cost
}

func (s *costSource) Declares() (event.Dialect, bool) { return event.AWS, false }

func (s *costSource) Run(ctx context.Context, sink source.Sink) error {
	for _, payload := range s.payloads {
		batch, err := event.Parse([]byte(payload), event.AWS)
		if err != nil {
			return err
		}
		s.meter.takeCost()
		answer := make(chan source.Outcome, 1)
		if err := sink.Deliver(ctx, source.Delivery{Events: batch.Events, Done: func(o source.Outcome) { answer <- o }}); err != nil {
			return err
		}
		if o := <-answer; !o.Ack {
			return fmt.Errorf("not acknowledged: %+v", o)
		}
		s.costs = append(s.costs, s.meter.takeCost())
	}
	return nil
}

// dynamoMeter counts write units by the published rule: one per 1,024 bytes of the larger of the old and new
// item, even for a rejected write. In the index, it counts one for each added or removed entry.
type dynamoMeter struct {
	url     string
	forward *httputil.ReverseProxy
	mu      sync.Mutex
	cost    cost
	due     map[string]string // index entry of each item
}

func newDynamoMeter(t *testing.T, endpoint string) *dynamoMeter {
	t.Helper()
	to, err := url.Parse(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	m := &dynamoMeter{forward: httputil.NewSingleHostReverseProxy(to), due: map[string]string{}}
	front := httptest.NewServer(m)
	t.Cleanup(front.Close)
	m.url = front.URL
	return m
}

func (m *dynamoMeter) takeCost() cost {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.cost
	m.cost = cost{}
	return c
}

func (m *dynamoMeter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r = detached(r)
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	m.mu.Lock()
	defer m.mu.Unlock()
	answer := httptest.NewRecorder()
	m.forward.ServeHTTP(answer, r)
	m.cost.requests++
	if strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".PutItem") {
		m.put(body, answer.Code == http.StatusOK)
	}
	for name, values := range answer.Header() {
		w.Header()[name] = values
	}
	w.WriteHeader(answer.Code)
	_, _ = answer.Body.WriteTo(w)
}

func (m *dynamoMeter) put(body []byte, done bool) {
	var request struct{ Item map[string]map[string]string }
	if err := json.Unmarshal(body, &request); err != nil {
		panic(fmt.Sprintf("parse a request that DynamoDB accepted: %v", err))
	}
	size := 0
	for name, value := range request.Item {
		for _, v := range value {
			size += len(name) + len(v) // bytes are in base64, so this is at least their size
		}
	}
	m.cost.table += (size + 1023) / 1024
	if !done {
		return
	}
	id, now := request.Item["p"]["S"]+request.Item["s"]["B"], request.Item["d"]["B"]
	was := m.due[id]
	m.due[id] = now
	switch {
	case was == now:
	case was == "", now == "":
		m.cost.index++
	default:
		m.cost.index += 2
	}
}
