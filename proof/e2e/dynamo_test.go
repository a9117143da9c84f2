//go:build unix

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/proof/servertest"
	"github.com/pawlhq/pawl/store"
	"github.com/pawlhq/pawl/store/dynamo"
)

// The table throttles 30 % of the requests, and executes 5 % without an answer.
func TestKillsDynamoDB(t *testing.T) {
	t.Parallel()
	total, binary := &counts{}, build(t)
	server := servertest.DynamoDB(t)
	runRounds(t, total, func(t *testing.T, seed uint64) *round {
		direct := newTable(t, server, binary)
		records, err := dynamo.Open(t.Context(), direct)
		if err != nil {
			t.Fatal(err)
		}
		proxy := newDynamoProxy(t, seed, server.Endpoint)
		proxy.throttles, proxy.loses = 3, true
		table := strings.Replace(direct, server.Endpoint, proxy.url, 1)
		r := newRoundOn(t, servertest.MinIO, binary, seed, nil, workers, &testLedger{table, ledger.NewRows(records), newJournal(t, proxy)})
		r.network.lateWrites(8, 12)
		t.Cleanup(func() {
			proxy.mu.Lock()
			defer proxy.mu.Unlock()
			t.Logf("the table: %d requests, %d throttled, %d without an answer, %d abandoned", proxy.requests, proxy.throttled, proxy.lost, proxy.abandoned)
			if proxy.throttled == 0 || proxy.lost == 0 {
				t.Error("nothing was throttled, or no answer was lost: the test shows too little")
			}
		})
		return r
	})
}

// dynamoProxy forwards the writes of an item one at a time, so that it knows their order.
type dynamoProxy struct {
	url     string
	forward *httputil.ReverseProxy
	items   [4096]sync.Mutex // by hash of the item

	throttles int  // in ten requests
	loses     bool // one answer in twenty

	mu      sync.Mutex
	rng     *rand.Rand
	records []journalRecord

	requests, throttled, lost, abandoned int
}

func newDynamoProxy(t *testing.T, seed uint64, endpoint string) *dynamoProxy {
	t.Helper()
	to, err := url.Parse(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	p := &dynamoProxy{rng: rand.New(rand.NewPCG(seed, 5)), forward: httputil.NewSingleHostReverseProxy(to)}
	front := httptest.NewUnstartedServer(p)
	front.Config.IdleTimeout = time.Second // a process that was frozen finds its connections closed
	front.Start()
	t.Cleanup(front.Close)
	p.url = front.URL
	return p
}

const throttling = `{"__type":"com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException","message":"too fast"}`

func (p *dynamoProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	sender := r.Context()
	r = detached(r)
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	p.mu.Lock()
	p.requests++
	throttled, lost := p.rng.IntN(10) < p.throttles, p.loses && p.rng.IntN(20) == 0
	if throttled {
		p.throttled++
		p.mu.Unlock()
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, throttling)
		return
	}
	p.mu.Unlock()
	answer := httptest.NewRecorder()
	if operation == "PutItem" || operation == "DeleteItem" {
		p.write(sender, answer, r, written(body))
	} else {
		p.forward.ServeHTTP(answer, r)
	}
	if lost {
		p.mu.Lock()
		p.lost++
		p.mu.Unlock()
		panic(http.ErrAbortHandler)
	}
	for name, values := range answer.Header() {
		w.Header()[name] = values
	}
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes())
}

// write drops most requests whose sender timed out or died while the request waited for its item. Otherwise
// the requests of an overloaded table would queue up without end. The others land late.
func (p *dynamoProxy) write(sender context.Context, answer *httptest.ResponseRecorder, r *http.Request, item item) {
	of := &p.items[maphash.String(hashSeed, item.space+"\x00"+item.name)%uint64(len(p.items))]
	of.Lock()
	defer of.Unlock()
	if sender.Err() != nil && p.abandon() {
		panic(http.ErrAbortHandler)
	}
	p.forward.ServeHTTP(answer, r)
	if answer.Code != http.StatusOK || !strings.HasPrefix(item.space, "row/") {
		return
	}
	key, err := ledger.ParseKey(store.Key{Space: item.space, Name: item.name})
	if err != nil {
		panic(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.records = append(p.records, journalRecord{key: key, deleted: item.deleted, body: item.body})
}

func (p *dynamoProxy) abandon() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.abandoned++
	return p.rng.IntN(10) > 0
}

var hashSeed = maphash.MakeSeed()

type item struct {
	space, name, body string
	deleted           bool
}

func written(body []byte) item {
	type attributes struct {
		P struct{ S string } `json:"p"`
		S struct{ B []byte } `json:"s"`
		B struct{ S string } `json:"b"`
	}
	var request struct{ Item, Key *attributes }
	if err := json.Unmarshal(body, &request); err != nil {
		panic(fmt.Sprintf("parse a request of the driver: %v", err))
	}
	of := request.Item
	if of == nil {
		of = request.Key
	}
	space, _, _ := strings.Cut(of.P.S, "#")
	return item{space: space, name: string(of.S.B[1:]), body: of.B.S, deleted: request.Item == nil}
}

func (p *dynamoProxy) drain() ([]journalRecord, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	taken := p.records
	p.records = nil
	return taken, nil
}

func (p *dynamoProxy) writable() bool { return true }
func (p *dynamoProxy) close() error   { return nil }
