// Package sqssource receives notifications from one queue of Amazon SQS or of a compatible server. It reads
// notifications of S3, EventBridge and SNS, the latter in their envelope or raw.
//
// A message is deleted after the ledger has every event in it. Until then, the source renews its visibility
// timeout, for at most the 12 hours that SQS allows. A message that cannot be read is neither deleted nor
// renewed, so configure a dead-letter queue.
//
// The source needs the permissions sqs:ReceiveMessage, sqs:DeleteMessage and sqs:ChangeMessageVisibility on
// the queue.
package sqssource

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go/logging"

	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/internal/logthrottle"
	"github.com/pawlhq/pawl/source"
)

// Config configures a source. URL is required.
type Config struct {
	// URL of the queue. Requests are signed for the region in its host name, or else for the SDK's region
	// or us-east-1, with credentials from the SDK's chain.
	URL string
	// Dialect of the notifications; by default it is detected in each message.
	Dialect event.Dialect
	// ShutdownTimeout bounds Run's wait for outcomes after its context has ended; default 10 s. Running
	// requests get a few seconds more.
	ShutdownTimeout time.Duration
	// Logger defaults to slog.Default().
	Logger *slog.Logger
}

// Source receives messages from one queue.
type Source struct {
	cfg      Config
	region   string
	client   *sqs.Client
	limits   limits
	warnings warnings

	reject  func(source.Rejection)
	started atomic.Bool
}

var (
	_ source.Source   = (*Source)(nil)
	_ source.Declarer = (*Source)(nil)
	_ source.Rejecter = (*Source)(nil)
)

// OnReject implements [source.Rejecter].
func (s *Source) OnReject(f func(source.Rejection)) { s.reject = f }

// Only tests change the limits.
type limits struct {
	visibility  time.Duration
	maxHold     time.Duration // since the receipt of a message; it is not renewed longer
	poll        time.Duration // long poll
	call        time.Duration // all other requests
	batchDelay  time.Duration // wait for more answers for one request
	maxInFlight int           // messages
	receivers   int
	calls       int // that delete or renew messages, concurrently
}

// SQS allows 12 hours, by its own clock, and polls of 20 seconds.
var defaultLimits = limits{
	visibility: 30 * time.Second, maxHold: 12*time.Hour - time.Minute, poll: 20 * time.Second,
	call: 10 * time.Second, batchDelay: 20 * time.Millisecond,
	maxInFlight: 2000, receivers: 8, calls: 8,
}

type warnings struct {
	outage, unreadable, notAcknowledged, lost, unsent *logthrottle.Warning
}

// New checks cfg and loads the SDK's configuration. It sends no requests; [Source.Run] does.
func New(ctx context.Context, cfg Config) (*Source, error) {
	cfg.ShutdownTimeout = cmp.Or(cfg.ShutdownTimeout, 10*time.Second)
	cfg.Logger = cmp.Or(cfg.Logger, slog.Default())
	if cfg.Dialect != event.Detect && !slices.Contains(event.Dialects, cfg.Dialect) {
		_, err := event.ParseDialect(string(cfg.Dialect))
		return nil, fmt.Errorf("sqs: %w", err)
	}
	if cfg.ShutdownTimeout < 0 {
		return nil, errors.New("sqs: the shutdown timeout must not be negative")
	}
	u, err := url.Parse(cfg.URL)
	if err != nil || u.Host == "" || u.User != nil || len(u.Path) < 2 || u.Scheme != "http" && u.Scheme != "https" {
		// The parser's error would contain a password in the URL.
		return nil, errors.New("sqs: the queue's URL must look like https://sqs.eu-west-1.amazonaws.com/123456789012/uploads")
	}
	s := &Source{cfg: cfg, limits: defaultLimits, reject: func(source.Rejection) {}}
	for _, w := range []**logthrottle.Warning{&s.warnings.outage, &s.warnings.unreadable, &s.warnings.notAcknowledged, &s.warnings.lost, &s.warnings.unsent} {
		*w = logthrottle.New(cfg.Logger)
	}
	return s, s.connect(ctx, u)
}

// The host name is sqs.REGION.amazonaws.com, even in a VPC endpoint, or the older
// REGION.queue.amazonaws.com.
var regions = regexp.MustCompile(`(?:^|\.)sqs(?:-fips)?\.([a-z]{2,}-[a-z0-9-]+)\.|^([a-z]{2,}-[a-z0-9-]+)\.queue\.amazonaws\.`)

func (s *Source) connect(ctx context.Context, u *url.URL) error {
	// The SDK prints warnings on standard error that repeat its errors.
	opts := []func(*config.LoadOptions) error{config.WithLogger(logging.Nop{})}
	if m := regions.FindStringSubmatch(u.Host); m != nil {
		opts = append(opts, config.WithRegion(m[1]+m[2]))
	}
	cfg, err := config.LoadDefaultConfig(ctx, opts...)
	if err != nil {
		return fmt.Errorf("sqs: load the AWS configuration: %w", err)
	}
	s.region = cmp.Or(cfg.Region, "us-east-1")
	s.client = sqs.NewFromConfig(cfg, func(o *sqs.Options) {
		o.BaseEndpoint = aws.String(u.Scheme + "://" + u.Host)
		o.Region = s.region
		o.HTTPClient = awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
			t.MaxIdleConnsPerHost = s.limits.receivers + s.limits.calls
		})
	})
	return nil
}

// Declares implements source.Declarer.
func (s *Source) Declares() (d event.Dialect, trustSequencer bool) { return s.cfg.Dialect, false }
