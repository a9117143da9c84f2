package membucket_test

import (
	"testing"
	"time"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/bucket/buckettest"
	"github.com/pawlhq/pawl/bucket/membucket"
)

func TestConformance(t *testing.T) {
	buckettest.Run(t, func(*testing.T) buckettest.Harness {
		return buckettest.Harness{
			Store:  membucket.New(time.Now, []string{"b"}, membucket.WithVersioned("v")),
			Bucket: "b", Versioned: "v",
			DeleteConditions: true, DeleteAtomic: true, ListsBytes: true, InProcess: true,
			CopyConditions: bucket.CopyWhole | bucket.CopyParts,
		}
	})
}
