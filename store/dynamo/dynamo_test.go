package dynamo_test

import (
	"os"
	"testing"

	"github.com/pawlhq/pawl/proof/servertest"
	"github.com/pawlhq/pawl/store"
	"github.com/pawlhq/pawl/store/dynamo"
	"github.com/pawlhq/pawl/store/storetest"
)

func TestMain(m *testing.M) {
	_ = os.Setenv("AWS_ACCESS_KEY_ID", "pawl")
	_ = os.Setenv("AWS_SECRET_ACCESS_KEY", "pawl")
	os.Exit(m.Run())
}

// Most tests of the suite use a space with eight shards.
func TestConformance(t *testing.T) {
	t.Parallel()
	server := servertest.DynamoDB(t)
	storetest.Run(t, storetest.Harness{Shared: true, New: func(t *testing.T) storetest.Open {
		url := server.NewTable()
		if err := dynamo.Create(t.Context(), url); err != nil {
			t.Fatal(err)
		}
		return func() (store.Store, error) { return dynamo.OpenPatient(t.Context(), url) }
	}})
}
