package sqssource

import (
	"context"
	"fmt"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// MinMessage is the size in bytes of the longest notification of S3. A queue with a smaller maximum loses
// notifications.
const MinMessage = 64 << 10

// MaxMessage returns the queue's maximum message size in bytes. It needs the permission
// sqs:GetQueueAttributes; Run does not.
func (s *Source) MaxMessage(ctx context.Context) (int64, error) {
	const name = types.QueueAttributeNameMaximumMessageSize
	ctx, cancel := context.WithTimeout(ctx, s.limits.call)
	defer cancel()
	out, err := s.client.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: &s.cfg.URL, AttributeNames: []types.QueueAttributeName{name}})
	switch {
	case isDenied(err):
		return 0, fmt.Errorf("sqs: %s (region %s): denied: allow sqs:GetQueueAttributes on the queue: %w", s.cfg.URL, s.region, err)
	case err != nil:
		return 0, s.explain(err)
	}
	size, err := strconv.ParseInt(out.Attributes[string(name)], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("sqs: %s (region %s): the queue reports no %s", s.cfg.URL, s.region, name)
	}
	return size, nil
}
