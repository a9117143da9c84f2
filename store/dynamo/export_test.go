package dynamo

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
)

func ReadOnlyBody(c aws.HTTPClient) aws.HTTPClient { return readOnlyBody{c} }

// OpenPatient opens a table with a request timeout of two minutes. DynamoDB Local may be slow on a
// busy machine, and the suite needs definite answers.
func OpenPatient(ctx context.Context, url string) (*Store, error) {
	s, err := Open(ctx, url)
	if err != nil {
		return nil, err
	}
	s.timeout = 2 * time.Minute
	return s, nil
}
