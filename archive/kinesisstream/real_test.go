package kinesisstream

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/pawlhq/pawl/archive"
	"github.com/pawlhq/pawl/archive/archivetest"
	"github.com/pawlhq/pawl/proof/servertest"
)

func TestKinesalite(t *testing.T) { conform(t, servertest.Kinesalite(t), 10000) }

func TestKinesisLocal(t *testing.T) { conform(t, servertest.KinesisLocal(t), 2000) }

func conform(t *testing.T, server *servertest.Streams, records int) {
	t.Run("contract", func(t *testing.T) {
		archivetest.Run(t, func(t *testing.T, shards int) archivetest.Producer {
			return newProducer(t, server, server.NewStream(t, int32(shards)))
		})
	})
	t.Run("resharding under load", func(t *testing.T) { reshard(t, server, records) })
}

type producer struct {
	t      *testing.T
	server *servertest.Streams
	client *kinesis.Client
	name   string
	faults *faults
}

func newProducer(t *testing.T, server *servertest.Streams, name string) *producer {
	return &producer{t, server, server.Client(), name, &faults{trimmed: make(map[string]archive.Number), places: make(map[string]place)}}
}

func (p *producer) Stream() archive.Stream { return p.stream(p.name) }

func (p *producer) HasInexactEnds() bool { return p.server.ConstantEndNumbers }

func (p *producer) Missing() archive.Stream { return p.stream("missing") }

func (p *producer) stream(name string) *Stream {
	o := p.client.Options()
	return newStream(name, aws.Config{Region: o.Region, Credentials: o.Credentials}, func(to *kinesis.Options) {
		to.BaseEndpoint, to.HTTPClient = o.BaseEndpoint, &http.Client{Transport: p.faults}
	})
}

func (p *producer) Put(ctx context.Context, shard, key string, data ...[]byte) (archive.Number, error) {
	body := data[0]
	if len(data) > 1 {
		var records []archive.UserRecord
		for _, d := range data {
			records = append(records, archive.UserRecord{PartitionKey: key, Data: d})
		}
		body = archivetest.Aggregate(records...)
	}
	s, err := p.find(ctx, shard)
	if err != nil {
		return "", err
	}
	out, err := p.client.PutRecord(ctx, &kinesis.PutRecordInput{
		StreamName: &p.name, PartitionKey: &key, ExplicitHashKey: s.HashKeyRange.StartingHashKey, Data: body,
	})
	if err != nil {
		return "", err
	}
	return archive.Number(*out.SequenceNumber), nil
}

func (p *producer) find(ctx context.Context, shard string) (*types.Shard, error) {
	out, err := p.client.ListShards(ctx, &kinesis.ListShardsInput{StreamName: &p.name})
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(out.Shards, func(s types.Shard) bool { return *s.ShardId == shard })
	return &out.Shards[i], nil
}

func (p *producer) Split(ctx context.Context, shard string) error {
	s, err := p.find(ctx, shard)
	if err != nil {
		return err
	}
	low, _ := new(big.Int).SetString(*s.HashKeyRange.StartingHashKey, 10)
	high, _ := new(big.Int).SetString(*s.HashKeyRange.EndingHashKey, 10)
	middle := low.Add(low, high.Sub(high, low).Rsh(high, 1)).String()
	_, err = p.client.SplitShard(ctx, &kinesis.SplitShardInput{StreamName: &p.name, ShardToSplit: &shard, NewStartingHashKey: &middle})
	p.server.WaitActive(p.t, p.name)
	return err
}

func (p *producer) Merge(ctx context.Context, shard, neighbour string) error {
	_, err := p.client.MergeShards(ctx, &kinesis.MergeShardsInput{StreamName: &p.name, ShardToMerge: &shard, AdjacentShardToMerge: &neighbour})
	p.server.WaitActive(p.t, p.name)
	return err
}

func (p *producer) Trim(shard string, upTo archive.Number) {
	p.faults.mu.Lock()
	defer p.faults.mu.Unlock()
	p.faults.trimmed[shard] = upTo
}

func (p *producer) Throttle(n int) {
	p.faults.mu.Lock()
	defer p.faults.mu.Unlock()
	p.faults.throttled = n
}

func (p *producer) Expire() {
	p.faults.mu.Lock()
	defer p.faults.mu.Unlock()
	p.faults.age++
}

// faults adds throttling and expiry, which neither server supports.
type faults struct {
	mu        sync.Mutex
	throttled int
	age       int
	places    map[string]place // by iterator
	trimmed   map[string]archive.Number
}

type place struct {
	shard string
	age   int
}

func (f *faults) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	var in struct{ ShardId, ShardIterator string }
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	if operation == "GetRecords" {
		if refused := f.refusal(in.ShardIterator); refused != "" {
			return answer(http.StatusBadRequest, map[string]any{"__type": refused, "message": "said the test"}), nil
		}
	}
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil || resp.StatusCode != http.StatusOK || operation != "GetRecords" && operation != "GetShardIterator" {
		return resp, err
	}
	defer resp.Body.Close()
	var out map[string]any
	if err := json.NewDecoder(resp.Body).Decode(&out); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	at := place{cmp.Or(in.ShardId, f.places[in.ShardIterator].shard), f.age}
	for _, name := range []string{"ShardIterator", "NextShardIterator"} {
		if iterator, ok := out[name].(string); ok {
			f.places[iterator] = at
		}
	}
	if records, ok := out["Records"].([]any); ok {
		out["Records"] = slices.DeleteFunc(records, func(record any) bool {
			number, _ := record.(map[string]any)["SequenceNumber"].(string)
			return archive.Number(number).Compare(f.trimmed[at.shard]) <= 0
		})
	}
	return answer(http.StatusOK, out), nil
}

func (f *faults) refusal(iterator string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if at, known := f.places[iterator]; known && at.age != f.age {
		return "ExpiredIteratorException"
	}
	if f.throttled > 0 {
		f.throttled--
		return "ProvisionedThroughputExceededException"
	}
	return ""
}

func answer(status int, body map[string]any) *http.Response {
	b, err := json.Marshal(body)
	if err != nil {
		panic(fmt.Sprint("the answer was JSON: ", err))
	}
	return &http.Response{
		StatusCode: status, Header: http.Header{"Content-Type": {"application/x-amz-json-1.1"}}, Body: io.NopCloser(bytes.NewReader(b)),
	}
}
