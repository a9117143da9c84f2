// Package webhooksource takes notifications that stores post over HTTP.
//
// A post is answered 200 only when the ledger has answered for every event in
// it. Anything else asks the sender to post again: 429 while there is too much
// work, 503 when the outcome is open after half a minute or the process is going
// down, 400 for what cannot be read. Two stores differ in what they make of that:
//
//   - MinIO tries again every three seconds if the target has a queue_dir, and
//     gives a refused notification up if it has none: set one. With a queue_dir
//     a notification that cannot be read is offered for ever, and holds up
//     those behind it: the log says how it begins.
//   - versitygw waits three seconds for an answer, ignores it and never tries
//     again. What is lost so an audit finds.
//
// At most 1,000 connections are open at a time, or a quarter of the descriptors
// that the process may have, and the bodies that are being read have at most 16 MiB
// together. When there is no room for another, the connection that has waited the
// longest without proving its sender is closed, or the one with the largest body.
//
// Connections are plain HTTP. Beyond one machine, put something that speaks TLS
// in front: a token travels as it is.
package webhooksource

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/source"
)

// Config says where to listen and whom to believe. The zero value listens on
// this machine only and believes everyone on it.
type Config struct {
	// Listen is host:port; default 127.0.0.1:8081. Port 0 takes a free one,
	// see [Source.Addr]. A host beyond loopback needs a Token or a Secret.
	Listen string
	// Path of the endpoint; default /events.
	Path string
	// Token is what the Authorization header has to carry: a scheme and a
	// word ("Bearer x"), compared as it is, or one word, which is accepted
	// alone and after "Bearer ". MinIO's auth_token, given the same text,
	// sends just that; versitygw sends "Basic …" if its webhook URL has
	// user:password@ in it.
	Token string
	// Secret is a Standard Webhooks secret, whsec_ and base64, of at least
	// 24 bytes; signatures older or newer than five minutes are refused.
	// A sender proves itself by the token or by the secret, where both are
	// set: no store knows both. https://www.standardwebhooks.com
	Secret string
	// Dialect of the notifications; default: told from each payload.
	Dialect event.Dialect
	// TrustSequencer vouches for the store's order; see source.Delivery.
	TrustSequencer bool
	// ShutdownTimeout is how long Run, when its context has ended, waits for posts
	// that the sink has not answered; default 10 s.
	ShutdownTimeout time.Duration
	// Logger's default is slog.Default().
	Logger *slog.Logger
}

// Source is an HTTP endpoint for notifications.
type Source struct {
	cfg  Config
	auth authenticator
	// exposed: the address may be reached from other machines.
	exposed  bool
	warnings *warnings
	limits   limits

	started atomic.Bool
	ready   chan struct{}
	addr    net.Addr // set before ready is closed
}

var (
	_ source.Source   = (*Source)(nil)
	_ source.Declarer = (*Source)(nil)
)

// limits bound what a slow or hostile client costs.
type limits struct {
	readHeader   time.Duration // for a request's header
	read         time.Duration // for a request as a whole
	write        time.Duration // for its answer, once there is one
	idle         time.Duration // between two requests
	outcome      time.Duration // for what becomes of a notification
	maxConns     int           // open connections
	maxBodyBytes int64         // bytes of bodies that are being read
}

// New checks cfg. It does not listen yet: [Source.Run] does.
func New(cfg Config) (*Source, error) {
	cfg.Listen = cmp.Or(cfg.Listen, "127.0.0.1:8081")
	cfg.Path = cmp.Or(cfg.Path, "/events")
	cfg.ShutdownTimeout = cmp.Or(cfg.ShutdownTimeout, 10*time.Second)
	cfg.Logger = cmp.Or(cfg.Logger, slog.Default())
	host, _, err := net.SplitHostPort(cfg.Listen)
	if err != nil {
		return nil, fmt.Errorf("webhook: cannot listen on %s: want host:port, such as 127.0.0.1:8081", event.Quote(cfg.Listen))
	}
	if err := checkPath(cfg.Path); err != nil {
		return nil, err
	}
	if cfg.Dialect != event.Detect && !slices.Contains(event.Dialects, cfg.Dialect) {
		_, err := event.ParseDialect(string(cfg.Dialect))
		return nil, fmt.Errorf("webhook: %w", err)
	}
	if cfg.ShutdownTimeout < 0 {
		return nil, errors.New("webhook: the grace period must not be negative")
	}
	s := &Source{
		cfg:      cfg,
		exposed:  !isLoopback(host),
		warnings: newWarnings(cfg.Logger),
		limits: limits{
			readHeader: 5 * time.Second, read: 30 * time.Second,
			write: 10 * time.Second, idle: time.Minute,
			outcome:  30 * time.Second,
			maxConns: maxConnections(descriptors()), maxBodyBytes: maxBodyBytes,
		},
		ready: make(chan struct{}),
	}
	if s.auth, err = newAuthenticator(cfg.Token, cfg.Secret); err != nil {
		return nil, err
	}
	if s.exposed && s.auth.allowsAll() {
		return nil, errExposed(cfg.Listen)
	}
	return s, nil
}

// Ready is closed once the source listens. A Run that fails before never
// closes it.
func (s *Source) Ready() <-chan struct{} { return s.ready }

// Addr is the address listened on: with a true port where the configuration
// has 0. Nil before [Source.Ready].
func (s *Source) Addr() net.Addr {
	select {
	case <-s.ready:
		return s.addr
	default:
		return nil
	}
}

func checkPath(path string) error {
	u, err := url.ParseRequestURI(path)
	if err != nil || !strings.HasPrefix(path, "/") || u.Path != path {
		return fmt.Errorf("webhook: invalid path %s: want a path such as /events", event.Quote(path))
	}
	return nil
}

// Declares implements source.Declarer.
func (s *Source) Declares() (event.Dialect, bool) { return s.cfg.Dialect, s.cfg.TrustSequencer }
