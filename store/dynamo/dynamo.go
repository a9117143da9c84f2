// Package dynamo stores records in an Amazon DynamoDB table, for many machines and for functions.
//
// It refuses a global table with eventual consistency, because each Region evaluates conditions
// against its own copy.
package dynamo

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/logging"

	"github.com/pawlhq/pawl/store"
)

// callTimeout bounds one request, so that a hanging table does not delay lease renewals.
const callTimeout = 5 * time.Second

const openTimeout = time.Minute

const readAttempts = 10

// readLag is the assumed lag of reads without strong consistency. DynamoDB guarantees no bound, but
// it rarely exceeds a second.
const readLag = 5 * time.Second

// Store is a [store.Store] in a DynamoDB table.
type Store struct {
	client      *dynamodb.Client
	table       string
	region      string
	shardCounts map[string]int // see layout
	timeout     time.Duration  // of one request
	onUnits     func(store.Unit, float64)
}

// Open opens the existing table at a URL: see [Create].
//
//	dynamodb://table?region=eu-central-1
//
// The region and the credentials default to those of the environment.
// endpoint=http://127.0.0.1:8000 selects another server. If the table cannot hold the store, the
// error wraps [store.ErrUnusable].
func Open(ctx context.Context, url string) (*Store, error) {
	return open(ctx, url, (*Store).verifyTable, (*Store).initLayout)
}

// OpenReadOnly opens the table at a URL and writes nothing.
func OpenReadOnly(ctx context.Context, url string) (*Store, error) {
	return open(ctx, url, (*Store).verifyTable, (*Store).assumeLayout)
}

func open(ctx context.Context, url string, steps ...func(*Store, context.Context) error) (*Store, error) {
	s, err := connect(ctx, url)
	if err != nil {
		return nil, err
	}
	for _, step := range steps {
		if err := s.retryOpen(ctx, step); err != nil {
			if !errors.Is(err, store.ErrUnusable) && ctx.Err() == nil {
				err = s.unusable("cannot be opened: check credentials, region, network, and endpoint", err)
			}
			return nil, err
		}
	}
	return s, nil
}

func (s *Store) retryOpen(ctx context.Context, step func(*Store, context.Context) error) error {
	for until := time.Now().Add(openTimeout); ; {
		err := step(s, ctx)
		op, network := errors.AsType[*net.OpError](err)
		if err == nil || errors.Is(err, store.ErrUnusable) || network && op.Op == "dial" || time.Now().After(until) || pause(ctx, time.Second) != nil {
			return err
		}
	}
}

var tableNames = regexp.MustCompile(`^[A-Za-z0-9_.-]{3,255}$`)

// Parse parses the URL of a table. endpoint is empty for DynamoDB itself.
func Parse(rawURL string) (table, region, endpoint string, err error) {
	u, err := url.Parse(rawURL)
	if err != nil || u.Scheme != "dynamodb" || !tableNames.MatchString(u.Host) || u.Path != "" && u.Path != "/" || u.User != nil {
		return "", "", "", errors.New("cannot be read: write dynamodb://table?region=eu-central-1")
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil || u.Fragment != "" {
		return "", "", "", errors.New("has parameters that cannot be read: write dynamodb://table?region=eu-central-1")
	}
	for name, values := range query {
		switch {
		case name == "region" && len(values) == 1:
			region = values[0]
		case name == "endpoint" && len(values) == 1:
			endpoint = values[0]
		default:
			return "", "", "", fmt.Errorf("has the unsupported or repeated parameter %q: only region and endpoint are supported", name)
		}
	}
	if e, err := url.Parse(endpoint); endpoint != "" && (err != nil || e.Scheme != "http" && e.Scheme != "https" || e.Host == "" || e.User != nil) {
		return "", "", "", errors.New("has an invalid endpoint: write endpoint=http://127.0.0.1:8000")
	}
	return u.Host, region, endpoint, nil
}

func connect(ctx context.Context, rawURL string) (*Store, error) {
	table, region, endpoint, err := Parse(rawURL)
	if err != nil {
		return nil, fmt.Errorf("%w: the URL of the DynamoDB table %w", store.ErrUnusable, err)
	}
	opts := []func(*config.LoadOptions) error{config.WithLogger(logging.Nop{})}
	if region != "" {
		opts = append(opts, config.WithRegion(region))
	}
	cfg, err := config.LoadDefaultConfig(ctx, opts...)
	if err != nil {
		return nil, fmt.Errorf("%w: the AWS configuration: %w", store.ErrUnusable, err)
	}
	s := &Store{table: table, region: cfg.Region, timeout: callTimeout}
	if s.region == "" {
		return nil, s.unusable("has no region: write ?region=…, or set AWS_REGION", nil)
	}
	s.client = dynamodb.NewFromConfig(cfg, func(o *dynamodb.Options) {
		if endpoint != "" {
			o.BaseEndpoint = &endpoint
		}
		o.Retryer = retry.NewStandard(func(r *retry.StandardOptions) {
			r.MaxAttempts, r.MaxBackoff, r.RateLimiter = readAttempts, time.Second, ratelimit.None
		})
		o.HTTPClient = readOnlyBody{awshttp.NewBuildableClient().WithTransportOptions(transport)}
	})
	return s, nil
}

var traits = store.Traits{
	Partial: true, DueLag: readLag, ScanLag: readLag,
	Batch: 25, Swaps: 4, Apply: store.MaxApply,
	Body: 128 << 10, // a transaction may have at most 4 MB
	Name: store.MaxName,
}

// Traits implements [store.Store].
func (s *Store) Traits() store.Traits { return traits }

// Close implements [store.Store].
func (s *Store) Close() error { return nil }

func (s *Store) String() string {
	return fmt.Sprintf("the table %s in %s", s.table, aws.ToString(&s.region))
}
