package dynamo

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// ReadOnlyBody returns the client through which the driver sends its requests.
func ReadOnlyBody(c aws.HTTPClient) aws.HTTPClient { return readOnlyBody{c} }

// OpenPatient opens a table with a request timeout of two minutes. The conformance suite needs
// definite answers, and DynamoDB Local may take longer than callTimeout on a busy machine.
func OpenPatient(ctx context.Context, url string) (*Store, error) {
	s, err := Open(ctx, url)
	if err != nil {
		return nil, err
	}
	s.timeout = 2 * time.Minute
	return s, nil
}
