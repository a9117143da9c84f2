// Package dashboard serves web pages about the pipelines, rows and audits of a process.
package dashboard

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/pawlhq/pawl/cmd/pawl/app"
	"github.com/pawlhq/pawl/ledger"
)

// Config configures a dashboard. Only Logger is required.
type Config struct {
	Ledger   Ledger // nil: no pages about rows
	Operator Operator
	Rates    *Rates // required with Ledger
	Tables   []TablePage
	Logger   *slog.Logger
}

// Ledger reads rows.
type Ledger interface {
	// Overview reads at most limit unsettled rows of each pipeline.
	Overview(ctx context.Context, limit int) ([]PipelineStatus, error)
	// Page examines at most examine rows after a key, and returns at most show of those that match.
	Page(ctx context.Context, f *Filter, after Position, examine, show int) (Page, error)
	// Object returns nil if there is no row.
	Object(ctx context.Context, key ledger.RowKey) (*Object, error)
}

// Operator changes rows. It is nil if the pages are read-only.
type Operator interface {
	// Redrive skips rows that have changed, and rows in other states than dead and failed, unless force is
	// set. It returns a description of what it did, even with an error.
	Redrive(ctx context.Context, rows []ledger.Row, force bool) (string, error)
}

// PipelineStatus has the unsettled rows of a pipeline, and the result of its last audit.
type PipelineStatus struct {
	Pipeline   string    `json:"pipeline"`
	Pending    int       `json:"pending"`
	Processing int       `json:"processing"`
	Stuck      int       `json:"stuck"`
	Failed     int       `json:"failed"`
	Truncated  bool      `json:"truncated,omitempty"` // there are more rows than the limit
	Oldest     time.Time `json:"oldest,omitzero"`
	Audited    time.Time `json:"audited,omitzero"`
	Lost       *int64    `json:"lost,omitempty"`
	Dead       *int64    `json:"dead,omitempty"`
}

// Filter selects rows. An empty field selects all.
type Filter struct {
	Pipeline, State string
	Error           string // part of the last error, ignoring case
	Prefix          string // s3://bucket/prefix, or a key prefix in any bucket
}

// ByDue reports whether the rows are in the order of their due time, which is an index. All other rows are
// in the order of their keys.
func (f *Filter) ByDue() bool {
	switch ledger.State(f.State) {
	case ledger.StatePending, ledger.StateProcessing, ledger.StateStuck, ledger.StateFailed, ledger.StateDead:
		return f.Pipeline != ""
	}
	return false
}

// Position is a row. Due is set if the rows are in the order of their due time.
type Position struct {
	ledger.RowKey
	Due time.Time
}

// Page is a part of the rows of a filter.
type Page struct {
	Rows     []ledger.Row // that match
	Examined int
	Last     Position // the last one examined
	More     bool     // there may be further rows
	Command  string   // redrives all rows of the filter
}

// Object explains the row of an object.
type Object struct {
	Row                         ledger.Row
	Reason, Next, Order, Output string
}

// TablePage is a page with one table.
type TablePage struct {
	Path, Title, Note string
	Table             func(ctx context.Context) (Table, error)
}

// Table is a table of texts.
type Table struct {
	Head []string
	Rows [][]string
}

const (
	pageTimeout   = 20 * time.Second
	examineLimit  = 1000 // records of a page
	showLimit     = 200  // rows of a page
	maxFilterText = 2048 // bytes
)

//go:embed page
var files embed.FS

type server struct {
	Config
	pages *template.Template

	live        atomic.Pointer[liveTable]
	reading     chan struct{} // full while a request reads the table
	readerSlots chan struct{}
}

// Handler returns the pages' handler.
func Handler(c Config) http.Handler {
	s := &server{Config: c, reading: make(chan struct{}, 1), readerSlots: make(chan struct{}, maxReaders)}
	s.pages = template.Must(template.New("").Funcs(template.FuncMap{
		"redrivable": redrivable, "digest": digest, "force": func(k ledger.RowKey) string { return "/object/force?" + keyValues(k).Encode() },
		"text": app.Printable, "now": time.Now, "ago": app.RelativeTime, "time": app.FormatTime, "rfc": rfc3339,
		"row": rowLink, "object": formatObject, "rate": c.Rates.of, "states": func() []ledger.State { return ledger.States },
		"list": listLink, "count": countOf, "duration": formatDuration,
	}).ParseFS(files, "page/*.html"))
	mux := http.NewServeMux()
	for _, name := range []string{"style.css", "live.js", "icon.svg"} {
		mux.HandleFunc("GET /"+name, func(w http.ResponseWriter, r *http.Request) { http.ServeFileFS(w, r, files, "page/"+name) })
	}
	for i := range c.Tables {
		mux.HandleFunc("GET "+c.Tables[i].Path, s.page(c.Tables[i].Title, func(r *http.Request) (string, any, error) {
			t, err := c.Tables[i].Table(r.Context())
			return "table", map[string]any{"Note": c.Tables[i].Note, "Table": t}, err
		}))
	}
	if c.Ledger == nil {
		mux.Handle("GET /{$}", http.RedirectHandler(c.Tables[0].Path, http.StatusSeeOther))
	} else {
		mux.HandleFunc("GET /{$}", s.page("Overview", s.overview))
		mux.HandleFunc("GET /events", s.events)
		mux.HandleFunc("GET /objects", s.page("Objects", s.objects))
		mux.HandleFunc("GET /objects/redrive", s.page("Redrive", s.redriveShown))
		mux.HandleFunc("POST /objects/redrive", s.page("Redrive", s.redriveShown))
		mux.HandleFunc("GET /object", s.page("Object", s.object))
		mux.HandleFunc("GET /object/force", s.page("Force", s.redriveObject))
		mux.HandleFunc("POST /object", s.page("Object", s.redriveObject))
	}
	return protect(http.NewCrossOriginProtection().Handler(mux))
}

// protect rejects what other sites embed or fetch.
func protect(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store") // pages contain keys
		if r.Header.Get("Sec-Fetch-Site") == "cross-site" && r.Header.Get("Sec-Fetch-Mode") != "navigate" {
			http.Error(w, "requests of other sites are rejected", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// view is the data of every page.
type view struct {
	Title, Path string
	Nav         []TablePage
	Rows        bool // the process has rows
	Actions     bool
	Data        any
}

// problem is an error with a status for the client.
type problem struct {
	status int
	error
}

func badRequest(format string, args ...any) error {
	return problem{http.StatusBadRequest, fmt.Errorf(format, args...)}
}

// done is a successful action. The client continues at a page.
type done struct{ Result, Link string }

// page renders the template that load names.
func (s *server) page(title string, load func(r *http.Request) (name string, data any, err error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, stop := context.WithTimeout(r.Context(), pageTimeout)
		defer stop()
		name, data, err := load(r.WithContext(ctx))
		status := http.StatusOK
		if c, ok := data.(*confirmation); ok && c.Changed != "" {
			status = http.StatusConflict
		}
		if err != nil {
			name, data, status = "problem", err.Error(), http.StatusServiceUnavailable
			if p, ok := errors.AsType[problem](err); ok {
				status = p.status
			} else {
				s.Logger.Warn("the dashboard cannot read the ledger", "path", r.URL.Path, "error", err)
			}
		}
		s.render(w, status, name, view{Title: title, Path: r.URL.Path, Nav: s.nav(), Rows: s.Ledger != nil, Actions: s.Operator != nil, Data: data})
	}
}

func (s *server) nav() []TablePage {
	if s.Ledger == nil {
		return s.Tables
	}
	return append([]TablePage{{Path: "/", Title: "Overview"}, {Path: "/objects", Title: "Objects"}}, s.Tables...)
}

func (s *server) render(w http.ResponseWriter, status int, name string, v any) {
	var out bytes.Buffer
	if err := s.pages.ExecuteTemplate(&out, name, v); err != nil {
		s.Logger.Error("a page of the dashboard failed", "page", name, "error", err)
		http.Error(w, "the page could not be rendered", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(out.Bytes())
}

func (s *server) overview(r *http.Request) (string, any, error) {
	live, err := s.snapshot(r.Context())
	return "overview", template.HTML(live), err // snapshot rendered it by a template
}
