package dynamo_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/pawlhq/pawl/proof/servertest"
	"github.com/pawlhq/pawl/store"
	"github.com/pawlhq/pawl/store/dynamo"
)

type proxy struct {
	url     string
	forward *httputil.ReverseProxy
	mu      sync.Mutex
	answer  func(operation string) (status int, body string) // status 0: forward the server's answer
	drop    bool                                             // execute requests, but drop their answers
	sent    map[string]int                                   // requests by operation
}

func newProxy(t *testing.T, endpoint string) *proxy {
	to, err := url.Parse(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{forward: httputil.NewSingleHostReverseProxy(to), sent: map[string]int{}}
	front := httptest.NewServer(p)
	t.Cleanup(front.Close)
	p.url = front.URL
	return p
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	p.mu.Lock()
	p.sent[operation]++
	answer, drop := p.answer, p.drop
	p.mu.Unlock()
	if answer != nil {
		if status, body := answer(operation); status != 0 {
			w.Header().Set("Content-Type", "application/x-amz-json-1.0")
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
			return
		}
	}
	if drop {
		p.forward.ServeHTTP(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler)
	}
	p.forward.ServeHTTP(w, r)
}

func (p *proxy) answers(status int, body string, drop bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sent, p.drop, p.answer = map[string]int{}, drop, nil
	if status != 0 {
		p.answer = func(string) (int, string) { return status, body }
	}
}

func (p *proxy) count(operation string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sent[operation]
}

func fault(code string) string {
	return `{"__type":"com.amazonaws.dynamodb.v20120810#` + code + `","message":"the message"}`
}

func canceled(codes ...string) string {
	reasons := make([]string, len(codes))
	for i, c := range codes {
		reasons[i] = `{"Code":"` + c + `"}`
	}
	return `{"__type":"com.amazonaws.dynamodb.v20120810#TransactionCanceledException","message":"the message","CancellationReasons":[` +
		strings.Join(reasons, ",") + `]}`
}

func TestErrorsOfWrites(t *testing.T) {
	t.Parallel()
	server := servertest.DynamoDB(t)
	p := newProxy(t, server.Endpoint)
	s := openTable(t, strings.Replace(server.NewTable(), server.Endpoint, p.url, 1))
	for _, c := range []struct {
		name   string
		status int
		swap   string
		apply  string
		drop   bool
		want   error
	}{
		{"provisioned throughput", 400, fault("ProvisionedThroughputExceededException"), "", false, store.ErrThrottled},
		{"throttling", 400, fault("ThrottlingException"), "", false, store.ErrThrottled},
		{"request limit", 400, fault("RequestLimitExceeded"), "", false, store.ErrThrottled},
		{"transaction conflict", 400, fault("TransactionConflictException"), canceled("None", "TransactionConflict"), false, store.ErrThrottled},
		{"a throttled transaction", 400, "", canceled("ThrottlingError", "ConditionalCheckFailed"), false, store.ErrThrottled},
		{"expired credentials", 400, fault("ExpiredTokenException"), "", false, store.ErrThrottled},
		{"replicated write conflict", 400, fault("ReplicatedWriteConflictException"), "", false, store.ErrUnclear},
		{"transaction in progress", 400, "", fault("TransactionInProgressException"), false, store.ErrUnclear},
		{"internal error", 500, fault("InternalServerError"), "", false, store.ErrUnclear},
		{"unavailable", 503, "no JSON", "", false, store.ErrUnclear},
		{"lost answer", 0, "", "", true, store.ErrUnclear},
		{"validation", 400, fault("ValidationException"), canceled("ValidationError", "None"), false, store.ErrRejected},
		{"item collection", 400, fault("ItemCollectionSizeLimitExceededException"), canceled("ItemCollectionSizeLimitExceeded", "None"), false, store.ErrRejected},
		{"too large", 413, "", "", false, store.ErrRejected},
		{"no table", 400, fault("ResourceNotFoundException"), "", false, store.ErrUnusable},
		{"no permission", 400, fault("AccessDeniedException"), "", false, store.ErrUnusable},
		{"unknown credentials", 400, fault("UnrecognizedClientException"), "", false, store.ErrUnusable},
		{"no permission for the key", 400, fault("KMSAccessDeniedException"), "", false, store.ErrUnusable},
	} {
		t.Run(c.name, func(t *testing.T) {
			defer p.answers(0, "", false)
			changes := []store.Change{insert("a" + c.name), insert("b" + c.name)}
			if c.swap != "" || c.drop {
				p.answers(c.status, c.swap, c.drop)
				out, err := s.Swap(t.Context(), changes[:1])
				if err == nil {
					err = out[0].Err
				}
				if !errors.Is(err, c.want) || p.count("PutItem") != 1 {
					t.Errorf("Swap: %v after %d requests, want one, and %v", err, p.count("PutItem"), c.want)
				}
			}
			body := c.apply
			if body == "" {
				body = c.swap
			}
			p.answers(c.status, body, c.drop)
			if _, err := s.Apply(t.Context(), changes); !errors.Is(err, c.want) || p.count("TransactWriteItems") != 1 {
				t.Errorf("Apply: %v after %d requests, want one, and %v", err, p.count("TransactWriteItems"), c.want)
			}
		})
	}
}

func insert(name string) store.Change {
	k := store.Key{Space: "row/p", Name: name}
	return store.Change{Key: k, Next: &store.Record{Key: k, Nonce: store.NewNonce(), Body: "{}"}}
}

func openTable(t *testing.T, url string) *dynamo.Store {
	t.Helper()
	if err := dynamo.Create(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	s, err := dynamo.OpenPatient(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestThrottledReads(t *testing.T) {
	t.Parallel()
	server := servertest.DynamoDB(t)
	p := newProxy(t, server.Endpoint)
	s := openTable(t, strings.Replace(server.NewTable(), server.Endpoint, p.url, 1))
	one := insert("k")
	if out, err := s.Swap(t.Context(), []store.Change{one}); err != nil || !out[0].Applied {
		t.Fatal(out, err)
	}
	left := 3
	p.mu.Lock()
	p.answer = func(string) (int, string) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if left--; left >= 0 {
			return http.StatusBadRequest, fault("ThrottlingException")
		}
		return 0, ""
	}
	p.mu.Unlock()
	if found, err := s.Load(t.Context(), []store.Key{one.Key}); err != nil || len(found) != 1 {
		t.Errorf("Load: %v, %v", found, err)
	}
	p.answers(http.StatusBadRequest, fault("ThrottlingException"), false)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := s.Load(ctx, []store.Key{one.Key}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Load: %v, want the end of its context", err)
	}
}

// The SDK does not retry in this case.
func TestUnclearCreate(t *testing.T) {
	t.Parallel()
	server := servertest.DynamoDB(t)
	p := newProxy(t, server.Endpoint)
	p.answer = func(operation string) (int, string) {
		if operation == "PutItem" && p.count(operation) == 1 {
			return http.StatusBadRequest, fault("ReplicatedWriteConflictException")
		}
		return 0, ""
	}
	url := strings.Replace(server.NewTable(), server.Endpoint, p.url, 1)
	if err := dynamo.Create(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	if n := p.count("PutItem"); n != 2 {
		t.Errorf("the layout was written %d times, want 2", n)
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	server := servertest.DynamoDB(t)
	p := newProxy(t, server.Endpoint)
	for _, c := range []struct {
		name, url string
		make      func(in *dynamodb.CreateTableInput)
		want      string
	}{
		{"another scheme", "dynamo://table", nil, "write dynamodb://table?region=eu-central-1"},
		{"a path", "dynamodb://table/x?region=eu-central-1", nil, "write dynamodb://table?region=eu-central-1"},
		{"an unknown parameter", "dynamodb://table?regoin=eu-central-1", nil, `"regoin"`},
		{"parameters that cannot be read", "dynamodb://table?region=eu-central-1;endpoint=http://x", nil, "has parameters that cannot be read"},
		{"an endpoint with a password", "dynamodb://table?region=eu-central-1&endpoint=http://a:hush@x", nil, "has an invalid endpoint"},
		{"no server", "dynamodb://table?region=eu-central-1&endpoint=http://127.0.0.1:1", nil, "check credentials, region, network, and endpoint"},
		{"no table", "", nil, `create it with "pawl ledger create"`},
		{"other keys", "", func(in *dynamodb.CreateTableInput) {
			in.KeySchema, in.GlobalSecondaryIndexes = in.KeySchema[:1], nil
			in.AttributeDefinitions = in.AttributeDefinitions[:1]
		}, "has keys other than"},
		{"a text as range key", "", func(in *dynamodb.CreateTableInput) {
			in.AttributeDefinitions[1].AttributeType = types.ScalarAttributeTypeS
		}, "has keys other than"},
		{"no index", "", func(in *dynamodb.CreateTableInput) {
			in.GlobalSecondaryIndexes, in.AttributeDefinitions = nil, in.AttributeDefinitions[:2]
		}, `has no index "due"`},
		{"an index by number", "", func(in *dynamodb.CreateTableInput) {
			in.AttributeDefinitions[2].AttributeType = types.ScalarAttributeTypeN
		}, `has an index "due" with other keys`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.url == "" {
				c.url = server.NewTable()
			}
			if c.make != nil {
				makeTable(t, server, c.url, c.make)
			}
			refuses(t, c.url, c.want)
		})
	}
	ready := server.NewTable()
	openTable(t, ready)
	t.Run("a table that Create did not make", func(t *testing.T) {
		bare := server.NewTable()
		makeTable(t, server, bare, func(in *dynamodb.CreateTableInput) {
			in.GlobalSecondaryIndexes, in.AttributeDefinitions = nil, in.AttributeDefinitions[:2]
		})
		p.answers(0, "", false)
		err := dynamo.Create(t.Context(), strings.Replace(bare, server.Endpoint, p.url, 1))
		if !errors.Is(err, store.ErrUnusable) || p.count("UpdateContinuousBackups")+p.count("PutItem") > 0 {
			t.Errorf("Create changed or accepted a table of another program: %v", err)
		}
	})
	for _, c := range []struct{ name, replicas, want string }{
		{"a global table with eventual consistency", `"MultiRegionConsistency":"EVENTUAL",`, "eventual consistency"},
		{"an older global table", "", "eventual consistency"},
		{"a global table of the first version", `"GlobalTableVersion":"2017.11.29",`, "eventual consistency"},
		{"a global table with strong consistency", `"MultiRegionConsistency":"STRONG",`, "has no transactions"},
	} {
		t.Run(c.name, func(t *testing.T) {
			const table = `{"Table":{"TableStatus":"ACTIVE",%"Replicas":[{"RegionName":"eu-west-1"}],
				"AttributeDefinitions":[{"AttributeName":"p","AttributeType":"S"},{"AttributeName":"s","AttributeType":"B"},{"AttributeName":"d","AttributeType":"B"}],
				"KeySchema":[{"AttributeName":"p","KeyType":"HASH"},{"AttributeName":"s","KeyType":"RANGE"}],
				"GlobalSecondaryIndexes":[{"IndexName":"due","KeySchema":[{"AttributeName":"p","KeyType":"HASH"},{"AttributeName":"d","KeyType":"RANGE"}]}]}}`
			p.answers(http.StatusOK, strings.Replace(table, "%", c.replicas, 1), false)
			refuses(t, strings.Replace(ready, server.Endpoint, p.url, 1), c.want)
		})
	}
	t.Run("no permission", func(t *testing.T) {
		p.answers(http.StatusBadRequest, fault("AccessDeniedException"), false)
		refuses(t, strings.Replace(ready, server.Endpoint, p.url, 1), "denies access to these credentials")
	})
}

func refuses(t *testing.T, url, want string) {
	t.Helper()
	for name, open := range map[string]func(context.Context, string) (*dynamo.Store, error){"Open": dynamo.Open, "OpenReadOnly": dynamo.OpenReadOnly} {
		_, err := open(t.Context(), url)
		if !errors.Is(err, store.ErrUnusable) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want one line with %q", name, err, want)
		}
	}
}

func makeTable(t *testing.T, server *servertest.Tables, url string, change func(*dynamodb.CreateTableInput)) {
	t.Helper()
	name, _, _, err := dynamo.Parse(url)
	if err != nil {
		t.Fatal(err)
	}
	attribute := func(name string, kind types.ScalarAttributeType) types.AttributeDefinition {
		return types.AttributeDefinition{AttributeName: aws.String(name), AttributeType: kind}
	}
	keys := func(sort string) []types.KeySchemaElement {
		return []types.KeySchemaElement{
			{AttributeName: aws.String("p"), KeyType: types.KeyTypeHash}, {AttributeName: aws.String(sort), KeyType: types.KeyTypeRange},
		}
	}
	in := &dynamodb.CreateTableInput{
		TableName: &name, BillingMode: types.BillingModePayPerRequest, KeySchema: keys("s"),
		AttributeDefinitions: []types.AttributeDefinition{attribute("p", "S"), attribute("s", "B"), attribute("d", "B")},
		GlobalSecondaryIndexes: []types.GlobalSecondaryIndex{
			{IndexName: aws.String("due"), KeySchema: keys("d"), Projection: &types.Projection{ProjectionType: types.ProjectionTypeKeysOnly}},
		},
	}
	change(in)
	if _, err := server.Client().CreateTable(t.Context(), in); err != nil {
		t.Fatal(err)
	}
}

func TestForeignItem(t *testing.T) {
	t.Parallel()
	server := servertest.DynamoDB(t)
	url := server.NewTable()
	s := openTable(t, url)
	name, _, _, _ := dynamo.Parse(url)
	_, err := server.Client().PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &name, Item: map[string]types.AttributeValue{
		"p": &types.AttributeValueMemberS{Value: "register#0"}, "s": &types.AttributeValueMemberB{Value: []byte(".k")},
	}})
	if err != nil {
		t.Fatal(err)
	}
	k := store.Key{Space: "register", Name: "k"}
	_, err = s.Load(t.Context(), []store.Key{k})
	out, _ := s.Swap(t.Context(), []store.Change{{Key: k, Next: &store.Record{Key: k, Nonce: store.NewNonce()}}})
	_, applied := s.Apply(t.Context(), []store.Change{{Key: k, Next: &store.Record{Key: k, Nonce: store.NewNonce()}}})
	var scanned error
	for _, scanned = range s.Scan(t.Context(), store.Range{Space: "register"}) {
	}
	for what, err := range map[string]error{"Load": err, "Swap": out[0].Err, "Apply": applied, "Scan": scanned} {
		if err == nil || !strings.Contains(err.Error(), `has an item that Pawl did not write, with the key register#0 ".k"`) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	server := servertest.DynamoDB(t)
	url := server.NewTable()
	openTable(t, url)
	for _, f := range check(t, url) {
		if f.Problem != "" || f.Value == "" {
			t.Errorf("%+v", f)
		}
	}
	bare := server.NewTable()
	makeTable(t, server, bare, func(in *dynamodb.CreateTableInput) {
		in.GlobalSecondaryIndexes, in.AttributeDefinitions = nil, in.AttributeDefinitions[:2]
	})
	found := check(t, bare)
	for name, want := range map[string]string{"table": "has no index", "deletion protection": "enable deletion protection", "permissions": "Query on the index"} {
		if !strings.Contains(found[name].Problem, want) {
			t.Errorf("%s: %+v, want %q", name, found[name], want)
		}
	}
	if _, err := dynamo.Check(t.Context(), server.NewTable(), time.Second); !errors.Is(err, store.ErrUnusable) {
		t.Errorf("a table that is not there: %v", err)
	}
}

func check(t *testing.T, url string) map[string]store.Finding {
	t.Helper()
	found, err := dynamo.Check(t.Context(), url, time.Second)
	for range 5 { // DynamoDB Local may not answer in time on a busy machine
		if !strings.Contains(fmt.Sprint(found, err), "context deadline exceeded") {
			break
		}
		found, err = dynamo.Check(t.Context(), url, time.Second)
	}
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]store.Finding{}
	for _, f := range found {
		byName[f.Name] = f
	}
	return byName
}

type clientFunc func(*http.Request) (*http.Response, error)

func (f clientFunc) Do(r *http.Request) (*http.Response, error) { return f(r) }

// The SDK closes a request body because the response began, while net/http still reads it.
func TestClosedBodyIsAtItsEnd(t *testing.T) {
	t.Parallel()
	stream, ok := smithyhttp.NewStackRequest().(*smithyhttp.Request)
	if !ok {
		t.Fatal("the SDK has another type of request")
	}
	stream, err := stream.SetStream(strings.NewReader("body"))
	if err != nil {
		t.Fatal(err)
	}
	var sent io.ReadCloser
	client := dynamo.ReadOnlyBody(clientFunc(func(r *http.Request) (*http.Response, error) {
		sent = r.Body
		return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
	}))
	response, err := client.Do(stream.Build(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(response.Body.Close(), sent.Close()); err != nil {
		t.Fatal(err)
	}
	if n, err := io.Copy(io.Discard, sent); n != 0 || err != nil {
		t.Errorf("read %d bytes after the body was closed, error %v; want 0 and none", n, err)
	}
}
