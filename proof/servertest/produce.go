package servertest

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/pawlhq/pawl/archive"
	"github.com/pawlhq/pawl/archive/archivetest"
)

// Load describes the records of a producer. Each record begins with its index.
type Load struct {
	From, To   int // indices; To is excluded
	Size       int // of a record, at least, in bytes
	Aggregates int // every n-th put aggregates 10 records; 0 means none
}

const (
	aggregateOf = 10
	putsAtOnce  = 500 // limit of PutRecords
	bytesAtOnce = 4 << 20
)

// Index returns the index of a record of a [Load].
func Index(data []byte) (i int, err error) {
	_, err = fmt.Sscanf(string(data[:min(len(data), 32)]), `{"index":%d`, &i)
	return i, err
}

func (l Load) record(i int) archive.UserRecord {
	data := fmt.Sprintf(`{"index":%d,"customer":"c%d","text":"`, i, i*7919%1000)
	fill := max(0, l.Size-len(data)-2)
	data += strings.Repeat("the quick brown fox ", fill/20+1)[:fill] + `"}`
	return archive.UserRecord{PartitionKey: fmt.Sprintf("k%d", i), Data: []byte(data)}
}

// Each batch fits into one request.
func (l Load) puts(f func([]types.PutRecordsRequestEntry) error) error {
	var batch []types.PutRecordsRequestEntry
	size := 0
	for i, n := l.From, 0; i < l.To; n++ {
		r := l.record(i)
		data := r.Data
		i++
		if l.Aggregates > 0 && n%l.Aggregates == 0 {
			records := []archive.UserRecord{r}
			for ; i < l.To && len(records) < aggregateOf; i++ {
				records = append(records, l.record(i))
			}
			data = archivetest.Aggregate(records...)
		}
		batch = append(batch, types.PutRecordsRequestEntry{PartitionKey: &r.PartitionKey, Data: data})
		if size += len(data); len(batch) == putsAtOnce || size >= bytesAtOnce || i >= l.To {
			if err := f(batch); err != nil {
				return err
			}
			batch, size = nil, 0
		}
	}
	return nil
}

// Produce puts a load into a stream, each record once.
func (s *Streams) Produce(ctx context.Context, stream string, l Load) error {
	client := s.Client()
	return l.puts(func(batch []types.PutRecordsRequestEntry) error {
		for len(batch) > 0 {
			out, err := client.PutRecords(ctx, &kinesis.PutRecordsInput{StreamName: &stream, Records: batch},
				func(o *kinesis.Options) { o.RetryMaxAttempts = 1 })
			if _, busy := errors.AsType[*types.ResourceInUseException](err); busy && ctx.Err() == nil {
				continue // during a reshard
			}
			if err != nil {
				return fmt.Errorf("put records into %s: %w", stream, err)
			}
			var refused []types.PutRecordsRequestEntry
			for i, answer := range out.Records {
				if answer.ErrorCode != nil {
					refused = append(refused, batch[i])
				}
			}
			batch = refused
		}
		return nil
	})
}
