// Package sqssource takes notifications from a queue of Amazon SQS, or of a
// server that speaks its protocol. It reads what S3, EventBridge and SNS (in its
// envelope or raw) put there. Several queues are several sources.
//
// A message is deleted only when the ledger has answered for every event in it.
// Until then it is held: its visibility is renewed, so that no other consumer gets
// it, for the 12 hours that SQS allows. A message that is not acknowledged comes
// again when the ledger says that it is worth it. A message that cannot be read is neither
// deleted nor held: the queue's redrive policy moves it to the dead-letter queue,
// so give the queue one. The log tells of it.
//
// It needs the permissions sqs:ReceiveMessage, sqs:DeleteMessage and
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

// Config says which queue to read. URL is required.
type Config struct {
	// URL of the queue. Requests go to its host, signed for the region in its
	// name, or else for the SDK's, or else for us-east-1. Credentials are those
	// of the SDK's chain.
	URL string
	// Dialect of the notifications; default: told from each message.
	Dialect event.Dialect
	// ShutdownTimeout is how long Run, when its context has ended, waits for deliveries
	// that the sink has not answered; default 10 s. Requests that are under way
	// by then get some seconds more.
	ShutdownTimeout time.Duration
	// Logger's default is slog.Default().
	Logger *slog.Logger
}

// Source is a queue.
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

// limits are the same for all, except in tests.
type limits struct {
	visibility  time.Duration // how long a message stays away without a sign of life
	maxHold     time.Duration // from its receipt on, and no longer
	poll        time.Duration // of a long poll
	call        time.Duration // for an answer to anything else
	batchDelay  time.Duration // for more messages to come into one request
	maxInFlight int           // messages that are held at a time
	receivers   int           // requests at a time for messages
	calls       int           // requests at a time about messages
}

// SQS allows 12 hours, by its own clock, and polls of 20 seconds.
var defaultLimits = limits{
	visibility: 30 * time.Second, maxHold: 12*time.Hour - time.Minute, poll: 20 * time.Second,
	call: 10 * time.Second, batchDelay: 20 * time.Millisecond,
	maxInFlight: 2000, receivers: 8, calls: 8,
}

// journal holds the warnings that come again and again.
type warnings struct {
	outage, unreadable, notAcknowledged, lost, unsent *logthrottle.Warning
}

// New checks cfg. It reads the SDK's configuration, and sends nothing to the
// queue yet: [Source.Run] does.
func New(ctx context.Context, cfg Config) (*Source, error) {
	cfg.ShutdownTimeout = cmp.Or(cfg.ShutdownTimeout, 10*time.Second)
	cfg.Logger = cmp.Or(cfg.Logger, slog.Default())
	if cfg.Dialect != event.Detect && !slices.Contains(event.Dialects, cfg.Dialect) {
		_, err := event.ParseDialect(string(cfg.Dialect))
		return nil, fmt.Errorf("sqs: %w", err)
	}
	if cfg.ShutdownTimeout < 0 {
		return nil, errors.New("sqs: the grace period must not be negative")
	}
	u, err := url.Parse(cfg.URL)
	if err != nil || u.Host == "" || u.User != nil || len(u.Path) < 2 || u.Scheme != "http" && u.Scheme != "https" {
		// The parser's own error would repeat a password in the URL.
		return nil, errors.New("sqs: the queue's URL must look like https://sqs.eu-west-1.amazonaws.com/123456789012/uploads")
	}
	s := &Source{cfg: cfg, limits: defaultLimits}
	for _, w := range []**logthrottle.Warning{&s.warnings.outage, &s.warnings.unreadable, &s.warnings.notAcknowledged, &s.warnings.lost, &s.warnings.unsent} {
		*w = logthrottle.New(cfg.Logger)
	}
	return s, s.connect(ctx, u)
}

// regions finds the region in the name of a host: sqs.REGION.amazonaws.com, also
// behind a VPC endpoint, or REGION.queue.amazonaws.com, as it was once.
var regions = regexp.MustCompile(`(?:^|\.)sqs(?:-fips)?\.([a-z]{2,}-[a-z0-9-]+)\.|^([a-z]{2,}-[a-z0-9-]+)\.queue\.amazonaws\.`)

func (s *Source) connect(ctx context.Context, u *url.URL) error {
	// Or the SDK warns on standard error of what an error tells anyway.
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
