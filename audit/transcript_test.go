package audit_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/pawlhq/pawl/audit"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
)

// The transcripts in testdata are audits of one object. After a change, run with -rewrite and read
// the difference. Times are relative to the start; the settle window is 12 hours.
func TestTranscripts(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatalf("%d transcripts, %v", len(paths), err)
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			var s *transcript
			datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
				t.Helper()
				if d.Cmd == "story" {
					s = &transcript{row: ledger.Row{RowKey: key}, policy: ledger.DefaultPolicy(), byEvent: d.HasArg("by-event")}
					return ""
				}
				out, err := s.run(d)
				if err != nil {
					d.Fatalf(t, "%v", err)
				}
				return out
			})
		})
	}
}

var start = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)

type transcript struct {
	policy  ledger.Policy
	byEvent bool
	now     time.Time
	object  audit.Observation
	row     ledger.Row
}

func (s *transcript) run(d *datadriven.TestData) (string, error) {
	args := make(map[string]string)
	for _, a := range d.CmdArgs {
		args[a.Key] = strings.Join(a.Vals, ",")
	}
	at, err := time.ParseDuration(args["at"])
	if err != nil {
		return "", err
	}
	s.now = start.Add(at)
	output := ""
	switch d.Cmd {
	case "put": // etag=a [version=1] at=1s
		s.object = exists(ledger.Identity{VersionID: args["version"], ETag: args["etag"], ModTime: s.now, Meta: "m", Size: 7})
		return "", nil
	case "delete": // at=1s
		s.object = gone
		return "", nil
	case "notify": // seq=55 etag=a [version=1] [kind=removed] [untrusted] at=1s
		output, err = s.notify(args)
	case "work": // [fail | die] at=1s
		output, err = s.work(args)
	case "audit": // at=1s
		output, err = s.audit()
	default:
		err = fmt.Errorf("unknown command %q", d.Cmd)
	}
	return output + "\n" + s.describe(), err
}

func (s *transcript) notify(args map[string]string) (string, error) {
	seq, err1 := event.ParseSequencer(args["seq"])
	kind := event.Created
	var err2 error
	if name := args["kind"]; name != "" {
		err2 = kind.UnmarshalText([]byte(name))
	}
	e := &event.Event{Object: key.Object(), Kind: kind, Sequencer: seq, Time: s.now, ETag: args["etag"]}
	if e.Object.VersionID = args["version"]; e.ETag != "" {
		e.Size = 7
	}
	_, untrusted := args["untrusted"]
	var v ledger.Verdict
	s.row, v = s.row.Observe(e, !untrusted, s.now)
	return v.String(), errors.Join(err1, err2)
}

// After an attempt crashes with its worker, later ones do too until the row is dead.
func (s *transcript) work(args map[string]string) (string, error) {
	r, a, why := s.row.Claim("w1", &s.policy, s.now)
	if why != ledger.Granted {
		return "", fmt.Errorf("refused: %d", why)
	}
	read := ledger.Read{Kind: event.Removed}
	if s.object.Exists {
		read = ledger.Read{Kind: event.Created, Identity: s.object.Identity}
	}
	if s.byEvent {
		read = ledger.Read{Kind: a.Want.Kind, Identity: a.Want.Identity, ByEvent: true}
	}
	_, fails := args["fail"]
	_, dies := args["die"]
	switch {
	case fails:
		s.row, _ = r.Fail(&a, &ledger.Ending{Read: read}, &ledger.Failure{Message: "poison", Permanent: true}, 0, &s.policy, s.now)
		return "failed", nil
	case dies:
		for s.row = r; !s.row.Dead; s.row, _, _ = s.row.Claim("w1", &s.policy, s.row.Due()) {
		}
		return "died, and died again", nil
	}
	acted := a.MustAct(&read, nil)
	s.row, _ = r.Complete(&a, &ledger.Ending{Read: read, Sent: acted}, acted, &s.policy, s.now)
	return "completed, acted: " + strconv.FormatBool(acted), nil
}

func (s *transcript) audit() (string, error) {
	next, loss := audit.Decide(s.row, s.object, settle, s.now)
	if (loss == audit.None) != reflect.DeepEqual(s.row, next) {
		return "", fmt.Errorf("%v, and the row is\n%+v", loss, next)
	}
	s.row = next
	return loss.String(), nil
}

func (s *transcript) describe() string {
	if s.row.CreatedAt.IsZero() {
		return "  no row"
	}
	doubt := ""
	if s.row.Doubt {
		doubt = ", doubt"
	}
	return fmt.Sprintf("  %s%s\n  want %s\n  have %s", s.row.State(s.now), doubt, version(s.row.Want), version(s.row.Have))
}

func version(v ledger.Version) string {
	if v.Kind == 0 {
		return "nothing"
	}
	text := v.Order() + " " + v.Kind.String()
	id := v.Identity
	if id.VersionID != "" {
		text += " version=" + id.VersionID
	}
	if id.ETag != "" {
		text += " etag=" + id.ETag
	}
	if !id.ModTime.IsZero() {
		text += " mtime=" + id.ModTime.Sub(start).String()
	}
	return text
}
