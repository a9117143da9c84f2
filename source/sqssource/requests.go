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

// failure is why the queue did not do about a message what it was asked for.
type failure struct {
	error
	gone bool // nor ever will: it does not know the message by this handle
}

// failures are those in a batch. Who is not in it has none.
type failures map[*message]*failure

// delete deletes a batch of messages. The error is that of the whole request, and
// then it is every message's failure too.
func (s *Source) delete(ctx context.Context, some []*message) (failures, error) {
	ctx, cancel := context.WithTimeout(ctx, s.limits.call)
	defer cancel()
	in := &sqs.DeleteMessageBatchInput{QueueUrl: &s.cfg.URL}
	for i, m := range some {
		in.Entries = append(in.Entries, types.DeleteMessageBatchRequestEntry{Id: entryID(i), ReceiptHandle: &m.handle})
	}
	out, err := s.client.DeleteMessageBatch(ctx, in)
	if err != nil {
		return failAll(some, err), err
	}
	return failedEntries(some, out.Failed), nil
}

// setVisibility is delete for how long others are kept from messages, from now on.
func (s *Source) setVisibility(ctx context.Context, some []*message, d func(*message) time.Duration) (failures, error) {
	ctx, cancel := context.WithTimeout(ctx, s.limits.call)
	defer cancel()
	in := &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: &s.cfg.URL}
	for i, m := range some {
		in.Entries = append(in.Entries, types.ChangeMessageVisibilityBatchRequestEntry{
			Id: entryID(i), ReceiptHandle: &m.handle, VisibilityTimeout: seconds(d(m)),
		})
	}
	out, err := s.client.ChangeMessageVisibilityBatch(ctx, in)
	if err != nil {
		return failAll(some, err), err
	}
	return failedEntries(some, out.Failed), nil
}

func entryID(i int) *string { return aws.String(strconv.Itoa(i)) }

// seconds rounds up: a message comes no sooner than asked for.
func seconds(d time.Duration) int32 { return int32(math.Ceil(d.Seconds())) }

func failAll(some []*message, err error) failures {
	all := failures{}
	for _, m := range some {
		all[m] = &failure{error: err}
	}
	return all
}

func failedEntries(some []*message, failed []types.BatchResultErrorEntry) failures {
	all := failures{}
	for _, e := range failed {
		if i, err := strconv.Atoi(aws.ToString(e.Id)); err == nil && 0 <= i && i < len(some) {
			all[some[i]] = &failure{fmt.Errorf("%s: %s", aws.ToString(e.Code), aws.ToString(e.Message)), e.SenderFault}
		}
	}
	return all
}
