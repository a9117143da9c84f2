package dynamo

import (
	"context"
	"iter"
	"slices"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/pawlhq/pawl/store"
)

const (
	firstPage = 100 // each later page has twice as many
	lastPage  = 10_000
	// Range keys of names start with a point.
	endKey = "/"
)

type span struct {
	index       string // empty: the table itself
	attr        string // range key
	first, last []byte // inclusive
	newest      bool   // in descending order
	page        int    // in the first page of a shard
}

type shard struct {
	in   *dynamodb.QueryInput
	page []item
	done bool
	err  error
}

// merge buffers one page of each shard.
func (s *Store) merge(ctx context.Context, what, space string, in span) iter.Seq2[item, error] {
	return func(yield func(item, error) bool) {
		var wg sync.WaitGroup
		all := make([]*shard, s.shards(space))
		for n := range all {
			all[n] = &shard{in: s.query(space, n, in)}
			wg.Go(func() { s.fill(ctx, what, all[n]) })
		}
		wg.Wait()
		for {
			var next *shard
			for _, one := range all {
				if len(one.page) == 0 {
					s.fill(ctx, what, one)
				}
				if one.err != nil {
					yield(nil, one.err)
					return
				}
				if len(one.page) > 0 && (next == nil || in.precedes(one, next)) {
					next = one
				}
			}
			if next == nil || !yield(next.page[0], nil) {
				return
			}
			next.page = next.page[1:]
		}
	}
}

func (in *span) precedes(a, b *shard) bool {
	order := slices.Compare(bytesOf(a.page[0], in.attr), bytesOf(b.page[0], in.attr))
	return order < 0 != in.newest && order != 0
}

func (s *Store) query(space string, n int, in span) *dynamodb.QueryInput {
	q := &dynamodb.QueryInput{
		TableName: s.tableName(), KeyConditionExpression: aws.String("#p = :p AND #k BETWEEN :first AND :last"),
		ExpressionAttributeNames:  map[string]string{"#p": attrPart, "#k": in.attr},
		ExpressionAttributeValues: item{":p": text(part(space, n)), ":first": bytes(in.first), ":last": bytes(in.last)},
		ScanIndexForward:          aws.Bool(!in.newest), Limit: aws.Int32(int32(min(in.page, lastPage))), ReturnConsumedCapacity: returnUnits,
	}
	if in.index != "" {
		q.IndexName = &in.index
	} else if s.shards(space) == 1 {
		q.ConsistentRead = aws.Bool(true)
	}
	return q
}

func (s *Store) fill(ctx context.Context, what string, one *shard) {
	for len(one.page) == 0 && !one.done && one.err == nil {
		one.err = s.call(ctx, what, func(ctx context.Context) error {
			got, err := s.client.Query(ctx, one.in)
			if err != nil {
				return err
			}
			s.report(store.ReadUnits, got.ConsumedCapacity)
			one.page, one.done = got.Items, len(got.LastEvaluatedKey) == 0
			one.in.ExclusiveStartKey = got.LastEvaluatedKey
			one.in.Limit = aws.Int32(min(2**one.in.Limit, lastPage))
			return nil
		})
	}
}

var _ store.Store = (*Store)(nil)
