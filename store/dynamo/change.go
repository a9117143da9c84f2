package dynamo

import (
	"context"
	"errors"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/pawlhq/pawl/store"
)

// DynamoDB returns the refusing item together with the refusal, so Swap need not read it.
const returnRefusingItem = types.ReturnValuesOnConditionCheckFailureAllOld

type condition struct {
	expression string
	names      map[string]string
	values     item
}

func conditionOf(c *store.Change) condition {
	switch {
	case !c.Expect.IsZero():
		return condition{"#n = :n", names(attrNonce), item{":n": bytes(c.Expect[:])}}
	case c.Next == nil: // nothing to delete: always refused
		return condition{"attribute_exists(#p) AND attribute_not_exists(#p)", names(attrPart), nil}
	}
	return condition{"attribute_not_exists(#p)", names(attrPart), nil}
}

// Swap sends each change as a separate, concurrent request.
func (s *Store) Swap(ctx context.Context, changes []store.Change) ([]store.Outcome, error) {
	if ctx.Err() != nil {
		return nil, s.explain(ctx, "swap", errNotSent)
	}
	out := make([]store.Outcome, len(changes))
	var wg sync.WaitGroup
	for i := range changes {
		if out[i].Err = traits.Check(&changes[i]); out[i].Err == nil {
			wg.Go(func() { out[i] = s.swap(ctx, &changes[i]) })
		}
	}
	wg.Wait()
	return out, nil
}

func (s *Store) swap(ctx context.Context, c *store.Change) store.Outcome {
	err := s.call(ctx, "swap", func(ctx context.Context) error {
		if c.Next == nil {
			return s.delete(ctx, c)
		}
		return s.put(ctx, c)
	})
	if refused, ok := errors.AsType[*types.ConditionalCheckFailedException](err); ok {
		return s.refusal(c, refused.Item)
	}
	return store.Outcome{Applied: err == nil, Err: err}
}

func (s *Store) put(ctx context.Context, c *store.Change) error {
	is := conditionOf(c)
	got, err := s.client.PutItem(ctx, &dynamodb.PutItemInput{
		TableName: s.tableName(), Item: s.item(c.Next), ConditionExpression: &is.expression, ReturnConsumedCapacity: returnUnits,
		ExpressionAttributeNames: is.names, ExpressionAttributeValues: is.values, ReturnValuesOnConditionCheckFailure: returnRefusingItem,
	}, noRetry)
	if err == nil {
		s.report(store.WriteUnits, got.ConsumedCapacity)
	}
	return err
}

func (s *Store) delete(ctx context.Context, c *store.Change) error {
	is := conditionOf(c)
	got, err := s.client.DeleteItem(ctx, &dynamodb.DeleteItemInput{
		TableName: s.tableName(), Key: s.key(c.Key), ConditionExpression: &is.expression, ReturnConsumedCapacity: returnUnits,
		ExpressionAttributeNames: is.names, ExpressionAttributeValues: is.values, ReturnValuesOnConditionCheckFailure: returnRefusingItem,
	}, noRetry)
	if err == nil {
		s.report(store.WriteUnits, got.ConsumedCapacity)
	}
	return err
}

// A retry of a conditional write would conflict with its own first copy.
func noRetry(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} }

func (s *Store) refusal(c *store.Change, old item) store.Outcome {
	if len(old) == 0 {
		return store.Outcome{Refused: true}
	}
	current, err := s.record(c.Key.Space, old)
	if err != nil {
		return store.Outcome{Err: err}
	}
	return store.Outcome{Refused: true, Current: &current}
}

// Apply sends all changes in one transaction.
func (s *Store) Apply(ctx context.Context, changes []store.Change) ([]store.Outcome, error) {
	if err := traits.CheckAll(changes); err != nil {
		return nil, err
	}
	if len(changes) == 0 {
		return nil, nil
	}
	writes := make([]types.TransactWriteItem, len(changes))
	for i := range changes {
		writes[i] = s.write(&changes[i])
	}
	err := s.call(ctx, "apply", func(ctx context.Context) error {
		got, err := s.client.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: writes, ReturnConsumedCapacity: returnUnits}, noRetry)
		if err == nil {
			s.reportAll(store.WriteUnits, got.ConsumedCapacity)
		}
		return err
	})
	out := make([]store.Outcome, len(changes))
	if canceled, ok := errors.AsType[*types.TransactionCanceledException](err); ok && len(canceled.CancellationReasons) == len(out) && refusedOnly(canceled) {
		for i, reason := range canceled.CancellationReasons {
			if aws.ToString(reason.Code) != codeNone {
				if out[i] = s.refusal(&changes[i], reason.Item); out[i].Err != nil {
					return nil, out[i].Err
				}
			}
		}
		return out, nil
	}
	if err != nil {
		return nil, err
	}
	for i := range out {
		out[i].Applied = true
	}
	return out, nil
}

func (s *Store) write(c *store.Change) types.TransactWriteItem {
	is := conditionOf(c)
	if c.Next == nil {
		return types.TransactWriteItem{Delete: &types.Delete{
			TableName: s.tableName(), Key: s.key(c.Key), ConditionExpression: &is.expression,
			ExpressionAttributeNames: is.names, ExpressionAttributeValues: is.values, ReturnValuesOnConditionCheckFailure: returnRefusingItem,
		}}
	}
	return types.TransactWriteItem{Put: &types.Put{
		TableName: s.tableName(), Item: s.item(c.Next), ConditionExpression: &is.expression,
		ExpressionAttributeNames: is.names, ExpressionAttributeValues: is.values, ReturnValuesOnConditionCheckFailure: returnRefusingItem,
	}}
}
