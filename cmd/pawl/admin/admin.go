// Package admin serves a process's dashboard, probes, metrics and profiles on a separate address.
package admin

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"strings"
	"sync"
	"time"
)

// Config configures a server.
type Config struct {
	Listen  string        // host:port
	Token   string        // for profiles and the dashboard; empty: no profiles
	Status  func() Status // called by each probe
	Metrics http.Handler
	// Dashboard may be nil. With a token, it requires the token. Without a token, only a loopback address
	// serves it.
	Dashboard http.Handler
	Logger    *slog.Logger
}

// Status is the state of a process. Both fields are lists of problems.
type Status struct {
	Dead    []string `json:"dead,omitempty"`    // only a restart helps
	Unready []string `json:"unready,omitempty"` // the process cannot work now
}

// silence is the minimum time without a turn or an answer after which a probe fails.
const silence = 30 * time.Second

// CheckLoop adds the problem of a loop that uses a store: its last turn, or the store's last answer, is
// longer ago than the maximum, which is at least 30 seconds.
func (s *Status) CheckLoop(loop, store string, turn, answer time.Time, maxTurn, maxAnswer time.Duration) {
	switch {
	case turn.IsZero():
		s.Unready = append(s.Unready, loop+" has not started yet")
	case time.Since(turn) > max(silence, maxTurn):
		s.Dead = append(s.Dead, loop+" has been blocked for "+since(turn))
	case answer.IsZero():
		s.Unready = append(s.Unready, store+" has not answered yet")
	case time.Since(answer) > max(silence, maxAnswer):
		s.Unready = append(s.Unready, store+" has not answered for "+since(answer))
	}
}

func since(t time.Time) string { return time.Since(t).Round(time.Second).String() }

// Server is a listener that has not started to serve.
type Server struct {
	cfg      Config
	listener net.Listener
	loopback bool
	active   sync.RWMutex // requests hold a read lock; after Serve it stays locked
}

// Listen opens the listener.
func Listen(ctx context.Context, cfg Config) (*Server, error) {
	var l net.ListenConfig
	listener, err := l.Listen(ctx, "tcp", cfg.Listen)
	if err != nil {
		return nil, fmt.Errorf("admin listener: %w", err)
	}
	addr := listener.Addr().(*net.TCPAddr)
	return &Server{cfg: cfg, listener: listener, loopback: addr.IP.IsLoopback()}, nil
}

// Addr returns the address.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// DashboardAccess tells whether and how the dashboard is served.
func (s *Server) DashboardAccess() string {
	switch {
	case s.cfg.Dashboard == nil:
		return "none"
	case s.cfg.Token != "":
		return "with the token"
	case s.loopback:
		return "read-only"
	}
	return "off on this address: set admin.token"
}

// Serve answers requests until ctx ends.
func (s *Server) Serve(ctx context.Context) error {
	var conns connections
	ctx, end := context.WithCancel(ctx)
	srv := &http.Server{
		Handler: s.handler(), BaseContext: func(net.Listener) context.Context { return ctx }, ConnState: conns.track,
		ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 2 * time.Minute,
		IdleTimeout: 30 * time.Second, MaxHeaderBytes: 16 << 10, ErrorLog: slog.NewLogLogger(s.cfg.Logger.Handler(), slog.LevelDebug),
	}
	srv.SetKeepAlivesEnabled(false) // an idle client must not occupy one of the connections
	stopped := make(chan struct{})
	context.AfterFunc(ctx, func() { // probes must learn of a shutdown, so the caller ends ctx last
		defer close(stopped)
		_ = srv.Close()
	})
	err := srv.Serve(s.listener)
	end()
	<-stopped
	s.active.Lock() // requests read the ledger, which the caller closes
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { respond(w, s.cfg.Status().Dead) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		status := s.cfg.Status()
		respond(w, append(status.Dead, status.Unready...))
	})
	mux.Handle("GET /metrics", s.cfg.Metrics)
	mux.Handle("/debug/pprof/", s.authorized(pprof.Index))
	mux.Handle("/debug/pprof/profile", s.authorized(pprof.Profile))
	mux.Handle("/debug/pprof/trace", s.authorized(pprof.Trace))
	switch d := s.cfg.Dashboard; {
	case d == nil:
	case s.cfg.Token != "":
		mux.Handle("/", s.logIn(d))
	case s.loopback:
		mux.Handle("/", d)
	default:
		mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "the dashboard is "+s.DashboardAccess(), http.StatusNotFound)
		})
	}
	checked := s.checkHost(mux)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.active.TryRLock() {
			defer s.active.RUnlock()
			checked.ServeHTTP(w, r)
		}
	})
}

// logIn requires the token as the password of HTTP's basic authentication.
func (s *Server) logIn(next http.Handler) http.Handler {
	want := sha256.Sum256([]byte(s.cfg.Token))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, password, _ := r.BasicAuth()
		if got := sha256.Sum256([]byte(password)); subtle.ConstantTimeCompare(got[:], want[:]) != 1 {
			w.Header().Set("WWW-Authenticate", `Basic realm="Pawl: any user name, and admin.token as the password", charset="UTF-8"`)
			http.Error(w, "the dashboard needs the token of the configuration's admin.token as the password", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// respond writes 200 without problems, otherwise 503.
func respond(w http.ResponseWriter, problems []string) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	if len(problems) > 0 {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_ = json.NewEncoder(w).Encode(struct {
		OK       bool     `json:"ok"`
		Problems []string `json:"problems,omitempty"`
	}{len(problems) == 0, problems})
}

// checkHost rejects other Host headers on a loopback address. Otherwise a web page could read the
// responses through a host name that it resolves to 127.0.0.1.
func (s *Server) checkHost(next http.Handler) http.Handler {
	if !s.loopback {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = r.Host
		}
		if ip := net.ParseIP(strings.Trim(host, "[]")); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			http.Error(w, "this listener serves only loopback host names", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (s *Server) authorized(next http.HandlerFunc) http.Handler {
	want := sha256.Sum256([]byte("Bearer " + s.cfg.Token))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got := sha256.Sum256([]byte(r.Header.Get("Authorization")))
		if s.cfg.Token == "" || subtle.ConstantTimeCompare(got[:], want[:]) != 1 {
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "profiles need the token of the configuration's admin.token", http.StatusUnauthorized)
			return
		}
		next(w, r)
	})
}
