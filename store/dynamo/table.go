package dynamo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

const dueIndex = "due"

// Hash keys of spaces contain a "#".
const layoutKey = "pawl"

// layout is the number of shards by space in a new table. A final "/" stands for all spaces with
// that prefix. Only a space with one shard can be read with strong consistency.
var layout = map[string]int{"row/": 8, "file": 8}

const maxShards = 64

const unknownOperation = "UnknownOperationException"

func transport(t *http.Transport) {
	t.MaxIdleConnsPerHost = traits.Batch * traits.Swaps
	t.IdleConnTimeout = 50 * time.Second // DynamoDB closes idle connections after a minute
}

// readOnlyBody hides the WriteTo method of request bodies. The SDK closes a body when the response
// starts, and WriteTo then returns io.EOF. net/http may take that for a failed write, close the
// connection, and lose a large response.
type readOnlyBody struct{ client aws.HTTPClient }

func (c readOnlyBody) Do(r *http.Request) (*http.Response, error) {
	if r.Body != nil && r.Body != http.NoBody {
		r.Body = struct{ io.ReadCloser }{r.Body}
	}
	return c.client.Do(r)
}

// Create creates the table at a URL, and waits until it is active. For an existing table of Pawl,
// it only enables point-in-time recovery.
func Create(ctx context.Context, url string) error {
	s, err := connect(ctx, url)
	if err != nil {
		return err
	}
	_, err = s.client.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName: s.tableName(), BillingMode: types.BillingModePayPerRequest, DeletionProtectionEnabled: aws.Bool(true),
		AttributeDefinitions: []types.AttributeDefinition{
			{AttributeName: aws.String(attrPart), AttributeType: types.ScalarAttributeTypeS},
			{AttributeName: aws.String(attrSort), AttributeType: types.ScalarAttributeTypeB},
			{AttributeName: aws.String(attrDue), AttributeType: types.ScalarAttributeTypeB},
		},
		KeySchema: schema(attrSort),
		GlobalSecondaryIndexes: []types.GlobalSecondaryIndex{{
			IndexName: aws.String(dueIndex), KeySchema: schema(attrDue), Projection: &types.Projection{ProjectionType: types.ProjectionTypeKeysOnly},
		}},
	})
	if _, exists := errors.AsType[*types.ResourceInUseException](err); err != nil && !exists {
		return s.explain(ctx, "create", err)
	}
	const createTimeout = 5 * time.Minute
	if err := dynamodb.NewTableExistsWaiter(s.client).Wait(ctx, &dynamodb.DescribeTableInput{TableName: s.tableName()}, createTimeout); err != nil {
		return s.explain(ctx, "create", err)
	}
	for _, step := range []func(*Store, context.Context) error{(*Store).verifyTable, (*Store).initLayout} {
		if err := s.retryOpen(ctx, step); err != nil {
			return err
		}
	}
	return s.enableRecovery(ctx)
}

// DynamoDB rejects this for some seconds after it has created a table.
func (s *Store) enableRecovery(ctx context.Context) error {
	for range 60 {
		_, err := s.client.UpdateContinuousBackups(ctx, &dynamodb.UpdateContinuousBackupsInput{
			TableName:                        s.tableName(),
			PointInTimeRecoverySpecification: &types.PointInTimeRecoverySpecification{PointInTimeRecoveryEnabled: aws.Bool(true)},
		})
		if slices.Contains(codesOf(err), unknownOperation) {
			return nil // DynamoDB Local has no backups
		}
		if _, early := errors.AsType[*types.ContinuousBackupsUnavailableException](err); !early {
			return s.explain(ctx, "point-in-time recovery", err)
		}
		if err := pause(ctx, 2*time.Second); err != nil {
			return s.explain(ctx, "point-in-time recovery", err)
		}
	}
	return s.unusable("has no point-in-time recovery yet, because DynamoDB is still preparing it: run the command again", nil)
}

func schema(sort string) []types.KeySchemaElement {
	return []types.KeySchemaElement{
		{AttributeName: aws.String(attrPart), KeyType: types.KeyTypeHash}, {AttributeName: aws.String(sort), KeyType: types.KeyTypeRange},
	}
}

func (s *Store) verifyTable(ctx context.Context) error {
	return s.call(ctx, "open", func(ctx context.Context) error {
		got, err := s.client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: s.tableName()})
		if err != nil {
			return err
		}
		return s.checkSchema(got.Table)
	})
}

func (s *Store) checkSchema(t *types.TableDescription) error {
	kinds := map[string]types.ScalarAttributeType{}
	for _, a := range t.AttributeDefinitions {
		kinds[aws.ToString(a.AttributeName)] = a.AttributeType
	}
	i := slices.IndexFunc(t.GlobalSecondaryIndexes, func(g types.GlobalSecondaryIndexDescription) bool { return aws.ToString(g.IndexName) == dueIndex })
	switch {
	case t.TableStatus == types.TableStatusCreating, t.TableStatus == types.TableStatusDeleting:
		return s.unusable("is being created or deleted: try again later", nil)
	case !sameSchema(t.KeySchema, attrSort), kinds[attrPart] != types.ScalarAttributeTypeS, kinds[attrSort] != types.ScalarAttributeTypeB:
		return s.unusable(`has keys other than "p" (S) and "s" (B): use a table of Pawl, or a new name, and run "pawl ledger create"`, nil)
	case i < 0:
		return s.unusable(`has no index "due" with the keys "p" and "d" (B): add it with the projection KEYS_ONLY`, nil)
	case !sameSchema(t.GlobalSecondaryIndexes[i].KeySchema, attrDue), kinds[attrDue] != types.ScalarAttributeTypeB:
		return s.unusable(`has an index "due" with other keys than "p" and "d" (B): delete it and create it again`, nil)
	case t.GlobalSecondaryIndexes[i].IndexStatus == types.IndexStatusCreating, t.GlobalSecondaryIndexes[i].IndexStatus == types.IndexStatusDeleting:
		return s.unusable(`has an index "due" that is being created or deleted: try again later`, nil)
	case aws.ToString(t.GlobalTableVersion) == "2017.11.29", len(t.Replicas) > 0 && t.MultiRegionConsistency != types.MultiRegionConsistencyStrong:
		return s.unusable("is a global table with eventual consistency, in which two Regions could hold one lease: use a table of one Region", nil)
	case len(t.Replicas) > 0:
		return s.unusable("is a global table, which has no transactions: use a table of one Region", nil)
	}
	return nil
}

func sameSchema(got []types.KeySchemaElement, sort string) bool {
	return slices.EqualFunc(got, schema(sort), func(a, b types.KeySchemaElement) bool {
		return aws.ToString(a.AttributeName) == aws.ToString(b.AttributeName) && a.KeyType == b.KeyType
	})
}

func (s *Store) initLayout(ctx context.Context) error {
	if err := s.readLayout(ctx); err != nil || s.shardCounts != nil {
		return err
	}
	err := s.call(ctx, "open", func(ctx context.Context) error {
		_, err := s.client.PutItem(ctx, &dynamodb.PutItemInput{
			TableName: s.tableName(), Item: s.layoutItem(layout), ConditionExpression: aws.String("attribute_not_exists(#p)"),
			ExpressionAttributeNames: names(attrPart),
		})
		if _, other := errors.AsType[*types.ConditionalCheckFailedException](err); other {
			return nil
		}
		return err
	})
	if err != nil {
		return err
	}
	return s.readLayout(ctx)
}

func (s *Store) assumeLayout(ctx context.Context) error {
	err := s.readLayout(ctx)
	if s.shardCounts == nil {
		s.shardCounts = layout
	}
	return err
}

func layoutID() item { return item{attrPart: text(layoutKey), attrSort: bytes([]byte(layoutKey))} }

func (s *Store) layoutItem(sharded map[string]int) item {
	i := layoutID()
	all := item{}
	for space, n := range sharded {
		all[space] = &types.AttributeValueMemberN{Value: strconv.Itoa(n)}
	}
	i["v"], i["shards"] = text("1.0"), &types.AttributeValueMemberM{Value: all}
	return i
}

func (s *Store) readLayout(ctx context.Context) error {
	return s.call(ctx, "open", func(ctx context.Context) error {
		got, err := s.client.GetItem(ctx, &dynamodb.GetItemInput{TableName: s.tableName(), Key: layoutID(), ConsistentRead: aws.Bool(true)})
		if err != nil || got.Item == nil {
			return err
		}
		if v := textOf(got.Item, "v"); !strings.HasPrefix(v, "1.") {
			return s.unusable(fmt.Sprintf("has the format %q, and this version of Pawl supports 1: upgrade Pawl", v), nil)
		}
		all, _ := got.Item["shards"].(*types.AttributeValueMemberM)
		if all == nil {
			return s.unusable("has an item \"pawl\" without numbers of shards: restore it", nil)
		}
		s.shardCounts = make(map[string]int, len(all.Value))
		for space, v := range all.Value {
			n, _ := v.(*types.AttributeValueMemberN)
			if n == nil {
				return s.unusable("has an invalid number of shards: restore the item \"pawl\"", nil)
			}
			shards, err := strconv.Atoi(n.Value)
			if err != nil || shards < 1 || shards > maxShards {
				return s.unusable(fmt.Sprintf("has %q shards for %q: restore the item \"pawl\"", n.Value, space), nil)
			}
			s.shardCounts[space] = shards
		}
		return nil
	})
}
