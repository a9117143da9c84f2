// Package webhooksource receives notifications that stores post over HTTP.
//
// The response is 200 after the ledger has every event of the notification. It is 429 while the sink is
// full, 503 if the outcome is unknown after 30 seconds, and 400 if the notification cannot be read. Stores
// react differently:
//
//   - MinIO retries every three seconds if the target has a queue_dir, and drops a rejected notification
//     otherwise. Always set a queue_dir. A notification that cannot be read then blocks later ones; the
//     log shows how it begins.
//   - versitygw ignores the response and never retries. An audit finds the lost notifications.
//
// At most 1,000 connections are open at a time, or a quarter of the process's file descriptors. Bodies that
// are being read have at most 16 MiB in total.
//
// Connections use plain HTTP, which does not protect the token. Beyond one machine, put a TLS proxy in
// front.
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

// Config configures a source. The zero value listens on loopback and accepts every local sender.
type Config struct {
	// Listen is host:port; default 127.0.0.1:8081. Port 0 selects a free port, see [Source.Addr].
	// A host other than loopback requires a Token or a Secret.
	Listen string
	// Path of the endpoint; default /events.
	Path string
	// Token is the expected Authorization header: a scheme and a word ("Bearer x"), compared
	// exactly, or one word, which is accepted alone and after "Bearer ". MinIO sends the right
	// header if its auth_token is the same text. versitygw sends "Basic …" if its webhook URL
	// contains user:password@.
	Token string
	// Secret is a Standard Webhooks secret: whsec_ and at least 24 bytes in base64. Signatures older or
	// newer than five minutes are rejected. If both Token and Secret are set, a sender needs one of them.
	// https://www.standardwebhooks.com
	Secret string
	// Dialect of the notifications; by default it is detected in each payload.
	Dialect event.Dialect
	// TrustSequencer: see [source.Delivery].
	TrustSequencer bool
	// ShutdownTimeout bounds Run's wait for outcomes after its context has ended; default 10 s.
	ShutdownTimeout time.Duration
	// Logger defaults to slog.Default().
	Logger *slog.Logger
}

// Source is an endpoint for notifications.
type Source struct {
	cfg  Config
	auth authenticator
	// Other machines may reach the address.
	exposed  bool
	warnings *warnings
	limits   limits

	reject  func(source.Rejection)
	started atomic.Bool
	ready   chan struct{}
	addr    net.Addr
}

var (
	_ source.Source   = (*Source)(nil)
	_ source.Declarer = (*Source)(nil)
	_ source.Rejecter = (*Source)(nil)
)

type limits struct {
	readHeader   time.Duration
	read         time.Duration
	write        time.Duration
	idle         time.Duration // between two requests
	outcome      time.Duration // of a delivery
	maxConns     int
	maxBodyBytes int64 // of all bodies that are being read
}

// New checks cfg. It does not listen; [Source.Run] does.
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
		return nil, errors.New("webhook: the shutdown timeout must not be negative")
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
		ready:  make(chan struct{}),
		reject: func(source.Rejection) {},
	}
	if s.auth, err = newAuthenticator(cfg.Token, cfg.Secret); err != nil {
		return nil, err
	}
	if s.exposed && s.auth.allowsAll() {
		return nil, errExposed(cfg.Listen)
	}
	return s, nil
}

// OnReject implements [source.Rejecter].
func (s *Source) OnReject(f func(source.Rejection)) { s.reject = f }

// Ready returns a channel that is closed when the source listens. It stays open if Run fails before
// it listens.
func (s *Source) Ready() <-chan struct{} { return s.ready }

// Addr returns the listener's address, or nil before [Source.Ready]. Its port is the actual one.
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
