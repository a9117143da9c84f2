package dynamo

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/pawlhq/pawl/store"
)

const returnUnits = types.ReturnConsumedCapacityTotal

var _ store.Metered = (*Store)(nil)

// OnUnits implements [store.Metered]. DynamoDB does not report the units of refused writes.
func (s *Store) OnUnits(report func(store.Unit, float64)) { s.onUnits = report }

func (s *Store) report(kind store.Unit, used *types.ConsumedCapacity) {
	if s.onUnits != nil && used != nil {
		s.onUnits(kind, aws.ToFloat64(used.CapacityUnits))
	}
}

func (s *Store) reportAll(kind store.Unit, used []types.ConsumedCapacity) {
	for i := range used {
		s.report(kind, &used[i])
	}
}
