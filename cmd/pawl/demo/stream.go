package demo

import (
	"encoding/json"
	"fmt"
	"hash/crc32"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	streamName   = "clicks"
	streamARN    = "arn:aws:kinesis:" + region + ":000000000000:stream/" + streamName
	streamShards = 4
)

// stream is an in-memory stream. It implements reading and putting in the Kinesis API.
type stream struct {
	created time.Time

	mu     sync.Mutex
	shards [streamShards][]record
	last   int
}

type record struct {
	SequenceNumber              string
	ApproximateArrivalTimestamp float64 // Unix time in seconds
	Data                        []byte
	PartitionKey                string
}

func newStream() *stream { return &stream{created: time.Now()} }

func (s *stream) put(key string, data []byte) (shard int, number string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	shard, number = int(crc32.ChecksumIEEE([]byte(key))%streamShards), sequenceNumber(s.last)
	s.shards[shard] = append(s.shards[shard], record{number, seconds(time.Now()), data, key})
	return shard, number
}

func sequenceNumber(n int) string { return fmt.Sprintf("49%054d", n) }

func shardID(i int) string { return fmt.Sprintf("shardId-%012d", i) }

func seconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }

type request struct {
	ShardID                string `json:"ShardId"`
	ShardIterator          string
	ShardIteratorType      string
	StartingSequenceNumber string
	PartitionKey           string
	Data                   []byte
}

func (s *stream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, op, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	var in request
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 2<<20)).Decode(&in)
	answer, known := map[string]func(*request) (any, error){
		"DescribeStreamSummary": s.describe, "ListShards": s.list, "GetShardIterator": s.iterator, "GetRecords": s.records, "PutRecord": s.putRecord,
	}[op]
	var out any
	switch {
	case !known:
		err = fmt.Errorf("the demo's stream does not support %q", op)
	case err == nil:
		out, err = answer(&in)
	}
	w.Header().Set("Content-Type", "application/x-amz-json-1.1")
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		out = map[string]string{"__type": "InvalidArgumentException", "message": err.Error()}
	}
	_ = json.NewEncoder(w).Encode(out) // the client may be gone
}

func (s *stream) describe(*request) (any, error) {
	return map[string]any{"StreamDescriptionSummary": map[string]any{
		"StreamName": streamName, "StreamARN": streamARN, "StreamStatus": "ACTIVE", "RetentionPeriodHours": 24,
		"StreamCreationTimestamp": seconds(s.created), "EnhancedMonitoring": []any{}, "OpenShardCount": streamShards,
	}}, nil
}

func (s *stream) list(*request) (any, error) {
	var shards []any
	for i := range s.shards {
		shards = append(shards, map[string]any{
			"ShardId": shardID(i), "SequenceNumberRange": map[string]string{"StartingSequenceNumber": sequenceNumber(0)},
			"HashKeyRange": map[string]string{"StartingHashKey": strconv.Itoa(i), "EndingHashKey": strconv.Itoa(i)},
		})
	}
	return map[string]any{"Shards": shards}, nil
}

// iterator returns the number of a shard and a position in it.
func (s *stream) iterator(in *request) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, records := range s.shards {
		if in.ShardID != shardID(i) {
			continue
		}
		at := 0
		for in.ShardIteratorType == "AT_SEQUENCE_NUMBER" && at < len(records) && records[at].SequenceNumber != in.StartingSequenceNumber {
			at++
		}
		return map[string]string{"ShardIterator": fmt.Sprintf("%d %d", i, at)}, nil
	}
	return nil, fmt.Errorf("unknown shard %q", in.ShardID)
}

func (s *stream) records(in *request) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var shard, at int
	if _, err := fmt.Sscanf(in.ShardIterator, "%d %d", &shard, &at); err != nil || shard < 0 || shard >= streamShards || at < 0 || at > len(s.shards[shard]) {
		return nil, fmt.Errorf("invalid iterator %q", in.ShardIterator)
	}
	const page = 200
	ahead := s.shards[shard][at:]
	behind := min(1000, max(0, len(ahead)-page))
	ahead = ahead[:min(page, len(ahead))]
	return map[string]any{
		"Records": append([]record{}, ahead...), "MillisBehindLatest": behind,
		"NextShardIterator": fmt.Sprintf("%d %d", shard, at+len(ahead)),
	}, nil
}

func (s *stream) putRecord(in *request) (any, error) {
	shard, number := s.put(in.PartitionKey, in.Data)
	return map[string]string{"ShardId": shardID(shard), "SequenceNumber": number}, nil
}
