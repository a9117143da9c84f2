// Package kinesisstream implements archive.Stream for Amazon Kinesis Data Streams and compatible
// servers.
//
// A reader sends at most five reads per second. An aggregate of the Kinesis Producer Library
// becomes a record with several user records.
//
// It needs the permissions kinesis:DescribeStreamSummary, kinesis:ListShards,
// kinesis:GetShardIterator and kinesis:GetRecords, and kms:Decrypt on the key of an encrypted
// stream.
package kinesisstream

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"
	"github.com/aws/smithy-go/logging"

	"github.com/pawlhq/pawl/archive"
)

// Config configures a stream. Stream is required.
type Config struct {
	// Stream is a name or an ARN.
	Stream string
	// Region defaults to the region in the ARN, or else of the SDK. With an Endpoint and no SDK
	// region, it is us-east-1.
	Region string
	// Endpoint is the URL of the service. Default: the AWS endpoint of the region.
	Endpoint string
}

// Stream is a Kinesis data stream. It is safe for concurrent use.
type Stream struct {
	name   string
	region string
	client *kinesis.Client
}

var _ archive.Stream = (*Stream)(nil)

// New returns a stream. It reads the configuration and credentials of the SDK, and sends no
// request.
func New(ctx context.Context, c Config) (*Stream, error) {
	if c.Stream == "" {
		return nil, errors.New("kinesis: no stream: set its name or ARN")
	}
	if c.Endpoint != "" {
		// The error of url.Parse could contain a password.
		u, err := url.Parse(c.Endpoint)
		if err != nil || u.Host == "" || u.User != nil || (u.Scheme != "http" && u.Scheme != "https") {
			return nil, errors.New("kinesis: the endpoint must look like https://host:port, without a user name")
		}
	}
	opts := []func(*config.LoadOptions) error{config.WithLogger(logging.Nop{})}
	if region := regionOf(c); region != "" {
		opts = append(opts, config.WithRegion(region))
	}
	cfg, err := config.LoadDefaultConfig(ctx, opts...)
	if err != nil {
		return nil, fmt.Errorf("kinesis: reading the AWS configuration: %w", err)
	}
	if cfg.Region == "" {
		if c.Endpoint == "" {
			return nil, fmt.Errorf("kinesis: no region for the stream %q: give its ARN, set region, or AWS_REGION", c.Stream)
		}
		cfg.Region = "us-east-1"
	}
	if cfg.Credentials != nil {
		cfg.Credentials = credentials{cfg.Credentials}
	}
	return newStream(c.Stream, cfg, func(o *kinesis.Options) {
		if c.Endpoint != "" {
			o.BaseEndpoint = &c.Endpoint
		}
	}), nil
}

func newStream(name string, cfg aws.Config, more func(*kinesis.Options)) *Stream {
	return &Stream{name: name, region: cfg.Region, client: kinesis.NewFromConfig(cfg, func(o *kinesis.Options) {
		o.Retryer = aws.NopRetryer{}
		more(o)
	})}
}

func regionOf(c Config) string {
	if fields := strings.Split(c.Stream, ":"); c.Region == "" && len(fields) == 6 {
		return fields[3]
	}
	return c.Region
}

func (s *Stream) nameOrARN() (name, arn *string) {
	if strings.HasPrefix(s.name, "arn:") {
		return nil, &s.name
	}
	return &s.name, nil
}

// Identify implements [archive.Stream].
func (s *Stream) Identify(ctx context.Context) (archive.StreamID, time.Duration, error) {
	in := &kinesis.DescribeStreamSummaryInput{}
	in.StreamName, in.StreamARN = s.nameOrARN()
	out, err := call(ctx, s, "describing", s.client.DescribeStreamSummary, in)
	if err != nil {
		return archive.StreamID{}, 0, err
	}
	d := out.StreamDescriptionSummary
	id := archive.StreamID{ARN: aws.ToString(d.StreamARN), Created: aws.ToTime(d.StreamCreationTimestamp).UTC()}
	return id, time.Duration(aws.ToInt32(d.RetentionPeriodHours)) * time.Hour, nil
}

// Shards implements [archive.Stream].
func (s *Stream) Shards(ctx context.Context) ([]archive.Shard, error) {
	var shards []archive.Shard
	in := &kinesis.ListShardsInput{}
	in.StreamName, in.StreamARN = s.nameOrARN()
	for {
		out, err := call(ctx, s, "listing the shards of", s.client.ListShards, in)
		if err != nil {
			return nil, err
		}
		for i := range out.Shards {
			shards = append(shards, shardOf(&out.Shards[i]))
		}
		if out.NextToken == nil {
			return shards, nil
		}
		in = &kinesis.ListShardsInput{NextToken: out.NextToken}
		if _, arn := s.nameOrARN(); arn != nil {
			in.StreamARN = arn
		}
	}
}

func shardOf(in *types.Shard) archive.Shard {
	out := archive.Shard{ID: aws.ToString(in.ShardId)}
	for _, parent := range []*string{in.ParentShardId, in.AdjacentParentShardId} {
		if parent != nil {
			out.Parents = append(out.Parents, *parent)
		}
	}
	if r := in.SequenceNumberRange; r != nil {
		out.First = archive.Number(aws.ToString(r.StartingSequenceNumber))
		out.Last = archive.Number(aws.ToString(r.EndingSequenceNumber))
	}
	return out
}
