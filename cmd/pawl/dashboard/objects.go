package dashboard

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/pawlhq/pawl/cmd/pawl/app"
	"github.com/pawlhq/pawl/ledger"
)

type list struct {
	Filter
	Page
	Link, Next, First, Redrive string
	Redrivable                 []ledger.Row
}

func (s *server) objects(r *http.Request) (string, any, error) {
	l, err := s.list(r)
	return "objects", l, err
}

// list reads the page of the request's filter and cursor.
func (s *server) list(r *http.Request) (*list, error) {
	q := r.URL.Query()
	l := &list{Filter: Filter{Pipeline: q.Get("pipeline"), State: q.Get("state"), Error: q.Get("error"), Prefix: q.Get("prefix")}}
	if len(l.Error) > maxFilterText || len(l.Prefix) > maxFilterText {
		return l, badRequest("the filter is longer than %d bytes: shorten it", maxFilterText)
	}
	if err := checkPipeline(l.Pipeline); err != nil {
		return l, err
	}
	if l.State != "" && !slices.Contains(ledger.States, ledger.State(l.State)) {
		return l, badRequest("%q is not a state: want one of %v", l.State, ledger.States)
	}
	after, err := decodeCursor(q.Get("after"), l.Pipeline)
	if err != nil {
		return l, err
	}
	l.Page, err = s.Ledger.Page(r.Context(), &l.Filter, after, examineLimit, showLimit)
	base := url.Values{}
	for name, value := range map[string]string{"pipeline": l.Pipeline, "state": l.State, "error": l.Error, "prefix": l.Prefix} {
		if value != "" {
			base.Set(name, value)
		}
	}
	if q.Get("after") != "" {
		l.First = "/objects?" + base.Encode()
		base.Set("after", q.Get("after"))
	}
	l.Link, l.Redrive = "/objects?"+base.Encode(), "/objects/redrive?"+base.Encode()
	if l.More {
		base.Set("after", encodeCursor(l.Last))
		l.Next = "/objects?" + base.Encode()
	}
	for i := range l.Rows {
		if redrivable(&l.Rows[i]) {
			l.Redrivable = append(l.Redrivable, l.Rows[i])
		}
	}
	return l, err
}

// redrivable reports whether a redrive without force changes the row.
func redrivable(r *ledger.Row) bool {
	state := r.State(time.Now())
	return state == ledger.StateDead || state == ledger.StateFailed
}

var errReadOnly = problem{http.StatusForbidden, errors.New("this dashboard is read-only: set admin.token in the configuration")}

// confirmation asks for a redrive of rows.
type confirmation struct {
	Rows             []ledger.Row
	Count            int    // of the rows that the action changes
	Action           string // redrive or force
	Question, Button string
	Post, Back       string // URLs
	Seen             string // digest of the rows
	Changed          string // what has changed since the client saw the rows
}

// digest differs if a row has changed.
func digest(rows ...ledger.Row) string {
	all := make([]string, len(rows))
	for i := range rows {
		all[i] = fmt.Sprintf("%s %x", keyValues(rows[i].RowKey).Encode(), rows[i].Nonce)
	}
	slices.Sort(all)
	sum := sha256.Sum256([]byte(strings.Join(all, "\n")))
	return hex.EncodeToString(sum[:])
}

func (s *server) redriveShown(r *http.Request) (string, any, error) {
	if s.Operator == nil {
		return "", nil, errReadOnly
	}
	l, err := s.list(r)
	if err != nil {
		return "", nil, err
	}
	c := &confirmation{Rows: l.Redrivable, Count: len(l.Redrivable), Action: "redrive", Post: l.Redrive, Back: l.Link}
	c.Question, c.Button = fmt.Sprintf("Redrive %d dead and failed rows?", c.Count), fmt.Sprintf("Redrive %d rows", c.Count)
	return s.redrive(r, c, fmt.Sprintf("The rows have changed since: %d rows now.", c.Count))
}

func (s *server) object(r *http.Request) (string, any, error) {
	key, err := objectKey(r)
	if err != nil {
		return "", nil, err
	}
	o, err := s.Ledger.Object(r.Context(), key)
	if err == nil && o == nil {
		err = problem{http.StatusNotFound, fmt.Errorf("the ledger has no row for %s in pipeline %q", key.Object(), key.Pipeline)}
	}
	return "object", o, err
}

// redriveObject asks before it forces.
func (s *server) redriveObject(r *http.Request) (string, any, error) {
	if s.Operator == nil {
		return "", nil, errReadOnly
	}
	_, data, err := s.object(r)
	if err != nil {
		return "", nil, err
	}
	row := data.(*Object).Row
	c := &confirmation{Rows: []ledger.Row{row}, Action: r.PostFormValue("action"), Post: rowLink(row.RowKey), Back: rowLink(row.RowKey)}
	if r.Method != http.MethodPost {
		c.Action = "force"
	}
	switch name := formatObject(row.RowKey); c.Action {
	case "force":
		c.Count, c.Button, c.Question = 1, "Force", "Repeat the effect for "+name+" even if it is committed?"
	case "redrive":
		c.Button, c.Question = "Redrive", "Redrive "+name+"?"
		if redrivable(&row) {
			c.Count = 1
		}
	default:
		return "", nil, badRequest("want the action redrive or force")
	}
	return s.redrive(r, c, fmt.Sprintf("The row has changed since: it is %s now.", row.State(time.Now())))
}

// redrive asks for confirmation, unless the client has seen the current rows and posts the confirmation.
func (s *server) redrive(r *http.Request, c *confirmation, changed string) (string, any, error) {
	c.Seen = digest(c.Rows...)
	if r.Method != http.MethodPost {
		return "confirm", c, nil
	}
	if r.PostFormValue("seen") != c.Seen {
		c.Changed = changed
		return "confirm", c, nil
	}
	result, err := s.Operator.Redrive(r.Context(), c.Rows, c.Action == "force")
	log := s.Logger.With("client", r.RemoteAddr, "filter", r.URL.RawQuery, "force", c.Action == "force", "result", result)
	if err != nil {
		log.Warn("redrive failed", "error", err)
		return "", nil, problem{http.StatusServiceUnavailable, fmt.Errorf("%s, then the redrive failed: %w", result, err)}
	}
	log.Info("redrive from the dashboard")
	return "done", done{result, c.Back}, nil
}

// checkPipeline rejects characters that no pipeline's name has.
func checkPipeline(name string) error {
	if len(name) > 64 || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-_.") != "" {
		return badRequest("%.80q is not the name of a pipeline", name)
	}
	return nil
}

func objectKey(r *http.Request) (ledger.RowKey, error) {
	key := keyOf(r.URL.Query())
	if err := checkPipeline(key.Pipeline); err != nil {
		return key, err
	}
	if key.Pipeline == "" || key.Bucket == "" || key.Key == "" {
		return key, badRequest("the URL needs pipeline, bucket and key")
	}
	return key, nil
}

func keyOf(q url.Values) ledger.RowKey {
	return ledger.RowKey{Pipeline: q.Get("pipeline"), Bucket: q.Get("bucket"), Key: q.Get("key"), VersionID: q.Get("version")}
}

// rowLink returns the URL of a row. Its query may contain bytes that are not UTF-8.
func rowLink(k ledger.RowKey) string { return "/object?" + keyValues(k).Encode() }

func keyValues(k ledger.RowKey) url.Values {
	q := url.Values{"pipeline": {k.Pipeline}, "bucket": {k.Bucket}, "key": {k.Key}}
	if k.VersionID != "" {
		q.Set("version", k.VersionID)
	}
	return q
}

func listLink(pipeline string, state ledger.State) string {
	return "/objects?" + url.Values{"pipeline": {pipeline}, "state": {string(state)}}.Encode()
}

// formatObject omits the quotes that event.Object.String puts around an unusual key.
func formatObject(k ledger.RowKey) string { return app.Printable(cmp.Or(k.Object().String(), "-")) }

// count is the number of rows in a state.
type count struct {
	N            int
	Bad, AtLeast bool
	Link         string
}

func countOf(p PipelineStatus, state ledger.State, n int) count {
	return count{n, state == ledger.StateStuck || state == ledger.StateFailed, p.Truncated, listLink(p.Pipeline, state)}
}

func formatDuration(d time.Duration) string {
	if d == 0 {
		return "–"
	}
	return d.Round(max(time.Millisecond, d/100).Truncate(time.Millisecond)).String()
}

func rfc3339(t time.Time) string { return t.UTC().Format(time.RFC3339) }
