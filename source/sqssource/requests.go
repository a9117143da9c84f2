package sqssource

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

type failure struct {
	error
	gone bool // a retry cannot succeed: the receipt handle is unknown
}

type failures map[*message]*failure

// If the whole request fails, every message has a failure, and the error is returned as well.
func (s *Source) delete(ctx context.Context, messages []*message) (failures, error) {
	ctx, cancel := context.WithTimeout(ctx, s.limits.call)
	defer cancel()
	in := &sqs.DeleteMessageBatchInput{QueueUrl: &s.cfg.URL}
	for i, m := range messages {
		in.Entries = append(in.Entries, types.DeleteMessageBatchRequestEntry{Id: entryID(i), ReceiptHandle: &m.handle})
	}
	out, err := s.client.DeleteMessageBatch(ctx, in)
	if err != nil {
		return failAll(messages, err), err
	}
	return failedEntries(messages, out.Failed), nil
}

// The visibility timeout starts now.
func (s *Source) setVisibility(ctx context.Context, messages []*message, d func(*message) time.Duration) (failures, error) {
	ctx, cancel := context.WithTimeout(ctx, s.limits.call)
	defer cancel()
	in := &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: &s.cfg.URL}
	for i, m := range messages {
		in.Entries = append(in.Entries, types.ChangeMessageVisibilityBatchRequestEntry{
			Id: entryID(i), ReceiptHandle: &m.handle, VisibilityTimeout: seconds(d(m)),
		})
	}
	out, err := s.client.ChangeMessageVisibilityBatch(ctx, in)
	if err != nil {
		return failAll(messages, err), err
	}
	return failedEntries(messages, out.Failed), nil
}

func entryID(i int) *string { return aws.String(strconv.Itoa(i)) }

// seconds rounds up, so that a message is not redelivered early.
func seconds(d time.Duration) int32 { return int32(math.Ceil(d.Seconds())) }

func failAll(messages []*message, err error) failures {
	failed := failures{}
	for _, m := range messages {
		failed[m] = &failure{error: err}
	}
	return failed
}

func failedEntries(messages []*message, failed []types.BatchResultErrorEntry) failures {
	all := failures{}
	for _, e := range failed {
		if i, err := strconv.Atoi(aws.ToString(e.Id)); err == nil && 0 <= i && i < len(messages) {
			all[messages[i]] = &failure{fmt.Errorf("%s: %s", aws.ToString(e.Code), aws.ToString(e.Message)), e.SenderFault}
		}
	}
	return all
}
