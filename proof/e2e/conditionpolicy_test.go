package e2e

import (
	"os"
	"regexp"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/pawlhq/pawl/proof/servertest"
)

// This test fails when a server starts to accept such a policy. Then update docs/AWS.md.
func TestNoServerEvaluatesConditions(t *testing.T) {
	text, err := os.ReadFile("../../docs/AWS.md")
	if err != nil {
		t.Fatal(err)
	}
	policies := regexp.MustCompile("(?s)```json bucket-policy\n(.*?)```").FindAllSubmatch(text, -1)
	if len(policies) != 2 {
		t.Fatalf("docs/AWS.md has %d bucket policies, want one for outputs and one for locks", len(policies))
	}
	bucket := regexp.MustCompile(`arn:aws:s3:::[a-z-]+/`)
	servertest.Each(t, servertest.Options{}, func(t *testing.T, srv *servertest.Server) {
		for _, p := range policies {
			name := srv.NewBucket(t)
			policy := bucket.ReplaceAllString(string(p[1]), "arn:aws:s3:::"+name+"/")
			_, err := srv.Client().PutBucketPolicy(t.Context(), &s3.PutBucketPolicyInput{Bucket: &name, Policy: &policy})
			if err == nil {
				t.Errorf("%s accepts the policy, but docs/AWS.md says that it rejects it\n%s", srv.Name, policy)
			}
			t.Log(err)
		}
	})
}
