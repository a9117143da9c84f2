package ledger

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/internal/format"
)

// Decode decodes a body that Encode returned. If the body is damaged or has another major version,
// Decode returns a row that is [Row.Unreadable].
func Decode(key RowKey, nonce Nonce, body string) Row {
	r, err := decode(body)
	if err != nil {
		return UnreadableRow(key, nonce, err)
	}
	r.RowKey, r.Nonce = key, nonce
	return r
}

// UnreadableRow returns a row of which only the key and the nonce are known.
func UnreadableRow(key RowKey, nonce Nonce, why error) Row {
	return Row{RowKey: key, Nonce: nonce, Unreadable: fmt.Errorf(
		"the row of %s in the ledger cannot be read: %w; a newer Pawl wrote it, or it is damaged: upgrade this Pawl, or restore the ledger", key, why)}
}

// wireRow is the stored form of a row; see Encode.
type wireRow struct {
	V  string  `json:"v"`
	At instant `json:"at"`
	wireVersion
	Have     jsontext.Value `json:"have"`
	Fence    *int64         `json:"fence"`
	Owner    string         `json:"owner"`
	Until    instant        `json:"until"`
	Doubt    *bool          `json:"doubt"`
	Forced   bool           `json:"forced"`
	Attempts *int           `json:"attempts"`
	Retry    instant        `json:"retry"`
	Error    string         `json:"error"`
	Dead     bool           `json:"dead"`
	Verify   instant        `json:"verify"`
	Event    instant        `json:"event"`
	Created  *instant       `json:"created"`
	Disorder int            `json:"disorder"`
	Since    *instant       `json:"since"`
	History  []string       `json:"log"`
	Unknown  jsontext.Value `json:",embed"`
}

type wireVersion struct {
	Seq  event.Sequencer `json:"seq"`
	Gen  uint64          `json:"gen"`
	Kind event.Kind      `json:"kind"`

	Version string  `json:"version"`
	ETag    string  `json:"etag"`
	Meta    string  `json:"meta"`
	MTime   instant `json:"mtime"`
	Size    int64   `json:"size"`
}

type instant struct {
	relative bool
	ms       int64
	full     time.Time
}

func (i *instant) UnmarshalJSON(b []byte) (err error) {
	switch {
	case string(b) == `""`:
		*i = instant{}
	case b[0] == '"':
		i.relative = false
		i.full, err = parseTime(strings.Trim(string(b), `"`))
	default:
		i.relative = true
		i.ms, err = strconv.ParseInt(string(b), 10, 64)
	}
	return err
}

func parseTime(s string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339Nano, s)
	if t = t.UTC(); err == nil && (t.Year() < 0 || t.Year() > 9999) {
		err = errYear
	}
	return t, err
}

type decoder struct {
	at     int64
	failed error
}

func (d *decoder) time(i instant) time.Time {
	if !i.relative {
		return i.full
	}
	return d.after(d.at, i.ms)
}

// firstMilli and lastMilli bound the years 0 to 9999, in milliseconds since 1970.
const firstMilli, lastMilli = -62167219200000, 253402300799999

func (d *decoder) after(from, ms int64) time.Time {
	if ms > 2*lastMilli || ms < -2*lastMilli || from+ms < firstMilli || from+ms > lastMilli {
		d.failed = errYear
		return time.Time{}
	}
	return time.UnixMilli(from + ms).UTC()
}

func decode(body string) (r Row, err error) {
	w := wireRow{wireVersion: wireVersion{Kind: event.Created}}
	if err := json.Unmarshal([]byte(body), &w); err != nil {
		return r, err
	}
	if err := format.Check(w.V, RowFormat); err != nil {
		return r, err
	}
	if w.At.relative {
		return r, errors.New(`"at" is not a full time`)
	}
	d := &decoder{at: w.At.full.UnixMilli()}
	have := w.wireVersion // missing members are equal to those of Want
	switch w.Have.Kind() {
	case 0:
	case 'n':
		have = wireVersion{}
	default:
		if err := json.Unmarshal(w.Have, &have); err != nil {
			return r, err
		}
	}
	r = Row{
		Want: d.version(&w.wireVersion), Have: d.version(&have),
		Lease:  Lease{Owner: w.Owner, Until: d.time(w.Until)},
		Forced: w.Forced, RetryAt: d.time(w.Retry), LastError: w.Error, Dead: w.Dead,
		VerifyAt: d.time(w.Verify), EventTime: d.time(w.Event), Disorder: w.Disorder,
		UpdatedAt: w.At.full, Unknown: string(w.Unknown),
	}
	if r.Doubt = w.Owner != ""; w.Doubt != nil {
		r.Doubt = *w.Doubt
	}
	if r.Attempts = usualAttempts(&r.Lease); w.Attempts != nil {
		r.Attempts = *w.Attempts
	}
	if w.Fence != nil {
		r.Lease.Fence = *w.Fence + d.at
	}
	if r.CreatedTime = r.EventTime; w.Created != nil {
		r.CreatedTime = d.time(*w.Created)
	}
	r.History = d.history(w.History, &r)
	switch n := len(r.History); {
	case w.Since != nil:
		r.CreatedAt = d.time(*w.Since)
	case n > 0:
		r.CreatedAt = r.History[n-1].At
	}
	return r, d.failed
}

func (d *decoder) version(w *wireVersion) Version {
	return Version{Sequencer: w.Seq, Generation: w.Gen, Kind: w.Kind, Identity: Identity{
		VersionID: w.Version, ETag: w.ETag, Meta: w.Meta, ModTime: d.time(w.MTime), Size: w.Size,
	}}
}

func (d *decoder) history(lines []string, r *Row) []Entry {
	if len(lines) == 0 {
		return nil
	}
	h, last := make([]Entry, len(lines)), d.at
	short := abbreviations(r)
	for i, line := range lines {
		when, rest, _ := strings.Cut(line, " ")
		if ms, err := strconv.ParseInt(when, 10, 64); err == nil {
			h[i].At = d.after(last, -ms)
		} else if h[i].At, err = parseTime(when); err != nil {
			d.failed = fmt.Errorf("history line begins with %q, want a time", when)
		}
		h[i].What, h[i].Note, _ = strings.Cut(rest, ": ")
		h[i].Note = expand(h[i].Note, short)
		last = h[i].At.UnixMilli()
	}
	return h
}

func expand(note string, short []abbreviation) string {
	if !strings.Contains(note, "~") {
		return note
	}
	var b strings.Builder
	for {
		before, after, found := strings.Cut(note, "~")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		text := "~"
		if after != "" {
			if i := slices.IndexFunc(short, func(a abbreviation) bool { return a.letter == after[0] }); i >= 0 {
				text, after = short[i].text, after[1:]
			} else if after[0] == '~' {
				after = after[1:]
			}
		}
		b.WriteString(text)
		note = after
	}
}
