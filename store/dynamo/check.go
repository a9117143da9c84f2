package dynamo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/pawlhq/pawl/store"
)

// Check examines a table, its permissions and the clock, without changing anything. skew is the
// maximum difference between two clocks. An error means that the table cannot be examined.
func Check(ctx context.Context, url string, skew time.Duration) ([]store.Finding, error) {
	s, err := connect(ctx, url)
	if err != nil {
		return nil, err
	}
	asked := time.Now()
	var got *dynamodb.DescribeTableOutput
	err = s.call(ctx, "describe", func(ctx context.Context) (err error) {
		got, err = s.client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: s.tableName()})
		return err
	})
	if err != nil {
		return nil, err
	}
	answered := time.Now()
	theirs, _ := middleware.GetServerTime(got.ResultMetadata)
	return []store.Finding{
		s.checkTable(got.Table), checkBilling(got.Table), checkProtection(got.Table), s.checkRecovery(ctx),
		s.checkPermissions(ctx), checkClock(theirs, asked, answered, skew),
	}, nil
}

func (s *Store) checkTable(t *types.TableDescription) store.Finding {
	f := store.Finding{Name: "table", Value: fmt.Sprintf("%s, %s", s, strings.ToLower(string(t.TableStatus)))}
	if err := s.checkSchema(t); err != nil {
		f.Problem = err.Error()
	}
	return f
}

func checkBilling(t *types.TableDescription) store.Finding {
	f := store.Finding{Name: "billing", Value: string(types.BillingModeProvisioned)}
	if t.BillingModeSummary != nil {
		f.Value = string(t.BillingModeSummary.BillingMode)
	}
	if f.Value != string(types.BillingModePayPerRequest) {
		f.Value += ": bursts above the capacity are throttled, which delays work"
	}
	return f
}

func checkProtection(t *types.TableDescription) store.Finding {
	f := store.Finding{Name: "deletion protection", Value: "on"}
	if !aws.ToBool(t.DeletionProtectionEnabled) {
		f.Value, f.Problem = "off", "one call can delete all rows: enable deletion protection"
	}
	return f
}

func (s *Store) checkRecovery(ctx context.Context) store.Finding {
	f := store.Finding{Name: "point-in-time recovery"}
	err := s.call(ctx, "describe backups", func(ctx context.Context) error {
		got, err := s.client.DescribeContinuousBackups(ctx, &dynamodb.DescribeContinuousBackupsInput{TableName: s.tableName()})
		if err != nil {
			return err
		}
		if d := got.ContinuousBackupsDescription; d != nil && d.PointInTimeRecoveryDescription != nil {
			f.Value = strings.ToLower(string(d.PointInTimeRecoveryDescription.PointInTimeRecoveryStatus))
		}
		return nil
	})
	switch {
	case err != nil && slices.Contains(codesOf(err), unknownOperation):
		f.Value = "not known to this server"
	case err != nil:
		f.Problem = err.Error()
	case f.Value != "enabled":
		f.Problem = "accidentally deleted rows cannot be restored: enable point-in-time recovery"
	}
	return f
}

func (s *Store) checkPermissions(ctx context.Context) store.Finding {
	never := condition{"attribute_exists(#p) AND attribute_not_exists(#p)", names(attrPart), nil}
	key := item{attrPart: text(layoutKey), attrSort: bytes([]byte("permissions"))}
	requests := []struct {
		action string
		send   func(context.Context) error
	}{
		{"BatchGetItem", func(ctx context.Context) error { _, _, err := s.batchGet(ctx, []item{key}); return err }},
		{"GetItem", s.readLayout},
		{"Query", func(ctx context.Context) error {
			_, err := s.client.Query(ctx, s.query("permissions", 0, span{attr: attrSort, last: []byte(endKey), first: []byte("."), page: 1}))
			return err
		}},
		{"Query on the index", func(ctx context.Context) error {
			_, err := s.client.Query(ctx, s.query("permissions", 0, span{index: dueIndex, attr: attrDue, last: []byte(endKey), first: []byte("."), page: 1}))
			return err
		}},
		{"PutItem", func(ctx context.Context) error {
			_, err := s.client.PutItem(ctx, &dynamodb.PutItemInput{
				TableName: s.tableName(), Item: key, ConditionExpression: &never.expression, ExpressionAttributeNames: never.names,
			}, noRetry)
			return err
		}},
		{"DeleteItem", func(ctx context.Context) error {
			_, err := s.client.DeleteItem(ctx, &dynamodb.DeleteItemInput{
				TableName: s.tableName(), Key: key, ConditionExpression: &never.expression, ExpressionAttributeNames: never.names,
			}, noRetry)
			return err
		}},
	}
	f := store.Finding{Name: "permissions", Value: "all that a worker needs"}
	var denied []string
	for _, r := range requests {
		err := s.call(ctx, r.action, r.send)
		if _, refused := errors.AsType[*types.ConditionalCheckFailedException](err); err != nil && !refused {
			denied = append(denied, fmt.Sprintf("%s (%v)", r.action, err))
		}
	}
	if len(denied) > 0 {
		f.Value, f.Problem = "not all", "these requests failed: "+strings.Join(denied, "; ")
	}
	return f
}

func checkClock(theirs, asked, answered time.Time, skew time.Duration) store.Finding {
	f := store.Finding{Name: "clock"}
	if theirs.IsZero() {
		f.Value = "unknown: the server sends no Date header"
		return f
	}
	const second = time.Second // whole seconds in the Date header
	off := max(asked.Sub(theirs.Add(second)), theirs.Sub(answered), 0)
	f.Value = fmt.Sprintf("at least %v off, of %v allowed", off.Round(time.Millisecond), skew)
	if off > skew {
		f.Problem = "the clocks of this machine and the server differ: synchronize them (NTP)"
	}
	return f
}
