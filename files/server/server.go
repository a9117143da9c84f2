// Package server runs the files service: the API, notifications, due timers, and a daily audit.
package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/bucket/s3bucket"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/files"
	"github.com/pawlhq/pawl/files/filesapi"
	"github.com/pawlhq/pawl/files/s3objects"
	"github.com/pawlhq/pawl/source"
	"github.com/pawlhq/pawl/store"
)

// Config configures a Server. Index, Store, Bucket and Secret are required.
type Config struct {
	Index  store.Store     // the caller closes it
	Store  *s3bucket.Store // object store of the bucket
	Bucket string
	Prefix string // no other program may use it
	// Secret signs cursors, and tokens (HS256) if Tokens is nil. It needs at least 32 random bytes,
	// equal in all processes.
	Secret []byte
	// Tokens verifies tokens; default HS256 with Secret.
	Tokens *filesapi.Tokens
	// Listen is the address of the API; default 127.0.0.1:8090.
	Listen string
	// Sources deliver the notifications of the bucket. Without them, a file becomes visible when the
	// client completes its upload, or after the upload time.
	Sources []source.Source

	Quota   files.Usage // maximum per entity; default 10 GiB and 1,000 open uploads
	MaxSize int64       // maximum file size in bytes; default 1 GiB, at most 5 TiB
	// LongestUpload is the time for which an upload may continue after its URL has expired; default
	// 1 h.
	LongestUpload time.Duration
	// Spool is the folder for bodies of POST /v1/files; default the system's temporary folder.
	Spool string
	// PublicEndpoint is the URL at which users reach the store; default the endpoint of Store.
	PublicEndpoint string
	// Browsers may show files of InlineTypes; default [s3objects.InlineTypes].
	InlineTypes []string
	// AcceptForgeableUploads permits stores that accept forged signatures.
	AcceptForgeableUploads bool
	Observer               Observer     // optional
	Logger                 *slog.Logger // default slog.Default()
}

// Observer receives the events of a server, for example for metrics. It must be safe for concurrent use.
type Observer interface {
	// Request is called after each request; see [filesapi.Config].
	Request(route string, status int, took time.Duration)
	// Changed is called after a comparison with the object changed the state of a file.
	Changed(to files.State)
	// Audited is called after each complete audit.
	Audited(r *files.AuditReport)
}

// Server is a files service.
type Server struct {
	Config
	service  *files.Service
	objects  *s3objects.Bucket
	requests sync.WaitGroup
	ready    atomic.Bool
}

// New checks the configuration and returns a Server. It sends no requests.
func New(c Config) (*Server, error) {
	switch {
	case c.Index == nil || c.Store == nil || c.Bucket == "":
		return nil, errors.New("files need an index, a store and a bucket")
	case c.Index.Traits().Apply == 0:
		return nil, errors.New("the index is in a store that cannot change several records atomically, which files need")
	}
	if err := files.CheckPrefix(c.Prefix); err != nil {
		return nil, err
	}
	if c.Tokens == nil {
		keys, err := filesapi.Secret(c.Secret)
		if err == nil {
			c.Tokens, err = filesapi.NewTokens(keys, filesapi.Claims{})
		}
		if err != nil {
			return nil, err
		}
	}
	c.Listen = cmp.Or(c.Listen, "127.0.0.1:8090")
	c.MaxSize = cmp.Or(c.MaxSize, 1<<30)
	if c.MaxSize > 5<<40 {
		return nil, errors.New("the maximum file size is above 5 TiB")
	}
	c.Quota.Bytes, c.Quota.Open = cmp.Or(c.Quota.Bytes, 10<<30), cmp.Or(c.Quota.Open, 1000)
	c.Logger = cmp.Or(c.Logger, slog.Default())
	times := files.DefaultTimes()
	times.Upload = cmp.Or(c.LongestUpload, times.Upload)
	if err := times.Check(); err != nil {
		return nil, err
	}
	index := files.NewIndex(c.Index)
	index.Logger = c.Logger
	s := &Server{Config: c}
	s.objects = s.bucket()
	s.service = &files.Service{
		Index: index, Objects: s.objects, Times: times, Prefix: c.Prefix, Limit: func(string) files.Usage { return c.Quota }, Logger: c.Logger,
	}
	if c.Observer != nil {
		s.service.Changed = c.Observer.Changed
	}
	return s, nil
}

// Ready reports whether Run serves the API, every source listens, and the store was probed.
func (s *Server) Ready() bool { return s.ready.Load() }

func (s *Server) bucket() *s3objects.Bucket {
	b := s3objects.New(s.Store.Client(), s.Bucket, s.PublicEndpoint)
	if s.AcceptForgeableUploads {
		b.AcceptForgeable()
	}
	if s.InlineTypes != nil {
		b.SetInlineTypes(s.InlineTypes)
	}
	return b
}

const (
	concurrentMessages              = 32
	shutdownTimeout                 = 20 * time.Second
	sweepInterval, sweepConcurrency = 10 * time.Second, 16
	firstAuditDelay, auditInterval  = time.Hour, 24 * time.Hour
)

// Run serves until ctx ends or a part fails. It probes the store when the sources are ready,
// because some stores wait for a webhook's response. Call it at most once.
func (s *Server) Run(ctx context.Context) error {
	api, err := s.api()
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.Listen)
	if err != nil {
		return fmt.Errorf("listen for the files API: %w", err)
	}
	s.Logger.Info("serving files", "address", "http://"+listener.Addr().String(), "to", event.Object{Bucket: s.Bucket, Key: s.Prefix})
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		if err := api.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	g.Go(func() error {
		<-ctx.Done()
		return s.shutDown(context.WithoutCancel(ctx), api)
	})
	g.Go(func() error { return s.consume(ctx) })
	g.Go(func() error { return s.probeStore(ctx) })
	g.Go(func() error { s.sweep(ctx); return nil })
	g.Go(func() error { s.auditDaily(ctx); return nil })
	return g.Wait()
}

// shutDown cancels requests that exceed shutdownTimeout and waits for them, so that the caller may
// close the index.
func (s *Server) shutDown(ctx context.Context, api *http.Server) error {
	s.ready.Store(false)
	end, cancel := context.WithTimeout(ctx, shutdownTimeout)
	defer cancel()
	err := api.Shutdown(end)
	if errors.Is(err, context.DeadlineExceeded) {
		s.Logger.Warn("canceled requests that did not end within the shutdown timeout", "timeout", shutdownTimeout)
		err = nil
	}
	err = errors.Join(err, api.Close())
	s.requests.Wait()
	return err
}

func (s *Server) trackRequests(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.requests.Add(1)
		defer s.requests.Done()
		handler.ServeHTTP(w, r)
	})
}

func (s *Server) api() (*http.Server, error) {
	c := filesapi.Config{
		Files: s.service, Tokens: s.Tokens, Cursors: s.Secret, MaxSize: s.MaxSize, Logger: s.Logger, Spool: s.Spool,
	}
	if s.Observer != nil {
		c.Observe = s.Observer.Request
	}
	handler, err := filesapi.New(c)
	return &http.Server{
		Handler: s.trackRequests(handler), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute,
		ErrorLog: slog.NewLogLogger(s.Logger.Handler(), slog.LevelWarn),
	}, err
}

func (s *Server) consume(ctx context.Context) error {
	sink := files.NewSink(s.service, s.Bucket, concurrentMessages)
	g, sourcing := errgroup.WithContext(ctx)
	for _, from := range s.Sources {
		g.Go(func() error {
			if err := from.Run(sourcing, sink); err != nil && ctx.Err() == nil {
				return err
			}
			return nil
		})
	}
	err := g.Wait()
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	sink.Close(end)
	return err
}

func (s *Server) probeStore(ctx context.Context) error {
	for _, from := range s.Sources {
		if l, ok := from.(interface{ Ready() <-chan struct{} }); ok { // the source listens for requests
			select {
			case <-l.Ready():
			case <-ctx.Done():
			}
		}
	}
	if err := s.Store.Check(ctx, s.Bucket); err != nil && ctx.Err() == nil && !errors.Is(err, bucket.ErrUnavailable) {
		return err
	}
	warnings, err := s.objects.Probe(ctx, s.Prefix)
	for _, warning := range warnings {
		s.Logger.Warn("the object store has a limitation", "warning", warning)
	}
	if errors.Is(err, s3objects.ErrUnsuitable) {
		return err
	}
	if err != nil && ctx.Err() == nil {
		s.Logger.Warn("could not probe the object store; starting anyway, and probing it before the first upload", "error", err)
	}
	s.ready.Store(ctx.Err() == nil)
	return nil
}

func (s *Server) sweep(ctx context.Context) {
	sweeper := &files.Sweeper{Service: s.service, Concurrency: sweepConcurrency}
	tick := time.NewTicker(sweepInterval)
	defer tick.Stop()
	for {
		if _, err := sweeper.Round(ctx); err != nil && ctx.Err() == nil {
			s.Logger.Warn("could not reconcile all due files", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
