// Package sqssource receives notifications from a queue of Amazon SQS or of a compatible server.
// It reads notifications of S3, EventBridge and SNS, the latter in their envelope or raw. Use one
// source for each queue.
//
// A message is deleted after the ledger has every event in it. Until then, the source renews its
// visibility timeout, for at most the 12 hours that SQS allows, so that no other consumer
// receives it. A message without an acknowledgement is redelivered after the delay in its
// outcome. A message that cannot be read is logged and neither deleted nor renewed. The queue's
// redrive policy moves it to the dead-letter queue, so configure one.
//
// The source needs the permissions sqs:ReceiveMessage, sqs:DeleteMessage and
// sqs:ChangeMessageVisibility on the queue.
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
	// URL is the URL of the queue. Requests go to its host. They are signed for the region in the
	// host name, or else for the SDK's region, or else for us-east-1, with credentials from the
	// SDK's chain.
	URL string
	// Dialect is the dialect of the notifications; by default it is detected for each message.
	Dialect event.Dialect
	// ShutdownTimeout is the maximum time that Run waits for outcomes after its context has ended; default
	// 10 s. Requests that run at that time get a few seconds more.
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

	started atomic.Bool
}

var (
	_ source.Source   = (*Source)(nil)
	_ source.Declarer = (*Source)(nil)
)

// limits are changed by tests only.
type limits struct {
	visibility  time.Duration // visibility timeout
	maxHold     time.Duration // maximum time from the receipt of a message during which it is renewed
	poll        time.Duration // duration of a long poll
	call        time.Duration // timeout of all other requests
	batchDelay  time.Duration // time to wait for more answers for one request
	maxInFlight int           // messages
	receivers   int           // maximum
	calls       int           // concurrent requests that delete or renew messages
}

// SQS allows a hold of 12 hours, by its own clock, and polls of 20 seconds.
var defaultLimits = limits{
	visibility: 30 * time.Second, maxHold: 12*time.Hour - time.Minute, poll: 20 * time.Second,
	call: 10 * time.Second, batchDelay: 20 * time.Millisecond,
	maxInFlight: 2000, receivers: 8, calls: 8,
}

// warnings has one throttled warning for each reason.
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
	s := &Source{cfg: cfg, limits: defaultLimits}
	for _, w := range []**logthrottle.Warning{&s.warnings.outage, &s.warnings.unreadable, &s.warnings.notAcknowledged, &s.warnings.lost, &s.warnings.unsent} {
		*w = logthrottle.New(cfg.Logger)
	}
	return s, s.connect(ctx, u)
}

// regions finds the region in a host name: sqs.REGION.amazonaws.com, also as part of a VPC
// endpoint, or the older REGION.queue.amazonaws.com.
var regions = regexp.MustCompile(`(?:^|\.)sqs(?:-fips)?\.([a-z]{2,}-[a-z0-9-]+)\.|^([a-z]{2,}-[a-z0-9-]+)\.queue\.amazonaws\.`)

func (s *Source) connect(ctx context.Context, u *url.URL) error {
	// Without this the SDK prints warnings on standard error that repeat its errors.
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
