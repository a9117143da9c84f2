package pipelinecmd

import (
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/pawlhq/pawl/cmd/pawl/config"
	"github.com/pawlhq/pawl/cmd/pawl/parts"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
)

// Each case has a sequence of transitions and the output at its end.
func TestExplain(t *testing.T) {
	datadriven.RunTest(t, "testdata/explain", func(t *testing.T, d *datadriven.TestData) string {
		s := newExplainRecorder(t)
		for _, arg := range d.CmdArgs {
			s.step(t, arg)
		}
		object := s.row.Object()
		return buildReport(object, []ledger.Row{s.row}, s.config, s.now).text(s.now)
	})
}

type explainRecorder struct {
	row     ledger.Row
	attempt ledger.Claim
	policy  ledger.Policy
	config  *config.Config
	now     time.Time
}

func newExplainRecorder(t *testing.T) *explainRecorder {
	c, err := parts.Table.Parse("pawl.yaml", []byte(
		"pipelines: [{name: gray, match: {bucket: photos}, image: {to: s3://out/}}]\nretry: {attempts: 2}"), nil)
	if err != nil {
		t.Fatal(err)
	}
	s := &explainRecorder{
		row:    ledger.Row{RowKey: ledger.RowKey{Pipeline: "gray", Bucket: "photos", Key: "a b.jpg"}},
		policy: ledger.DefaultPolicy(), config: c,
		now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
	}
	s.policy.Attempts = 2
	return s
}

func (s *explainRecorder) step(t *testing.T, arg datadriven.CmdArg) {
	ok := true
	ending := &ledger.Ending{Sent: true, Read: ledger.Read{Kind: event.Created, Identity: ledger.Identity{
		ETag: "9a0364b9e99bb480dd25e1f0284c8555", Size: 12345, ModTime: s.now,
	}}}
	switch arg.Key {
	case "event":
		seq, err := event.ParseSequencer(arg.Vals[0])
		if err != nil {
			t.Fatal(err)
		}
		s.row, _ = s.row.Observe(&event.Event{
			Object: s.row.Object(), Kind: event.Created, Sequencer: seq, Time: s.now, ETag: "e1", Size: 7, Name: "ObjectCreated:Put",
		}, true, s.now)
	case "claim":
		s.row, s.attempt, _ = s.row.Claim("host/1/abc", &s.policy, s.now)
	case "complete":
		s.row, ok = s.row.Complete(&s.attempt, ending, true, &s.policy, s.now)
	case "unsure":
		ending.Unsure = true
		s.row, ok = s.row.Complete(&s.attempt, ending, true, &s.policy, s.now)
	case "remove":
		ending.Read = ledger.Read{Kind: event.Removed}
		s.row, ok = s.row.Complete(&s.attempt, ending, true, &s.policy, s.now)
	case "fail":
		s.row, ok = s.row.Fail(&s.attempt, ending, &ledger.Failure{Message: arg.Vals[0]}, 0.5, &s.policy, s.now)
	case "permanent":
		s.row, ok = s.row.Fail(&s.attempt, ending, &ledger.Failure{Message: arg.Vals[0], Permanent: true}, 0.5, &s.policy, s.now)
	case "outage":
		s.row, ok = s.row.Fail(&s.attempt, ending, &ledger.Failure{Message: arg.Vals[0], Uncounted: true}, 0.5, &s.policy, s.now)
	case "force":
		s.row = s.row.Redrive(true, s.now)
	case "after":
		wait, err := time.ParseDuration(arg.Vals[0])
		if err != nil {
			t.Fatal(err)
		}
		s.now = s.now.Add(wait)
	case "unconfigured":
		s.config.Pipelines[0].Name = "other"
	default:
		t.Fatalf("unknown step %s", arg.Key)
	}
	if !ok {
		t.Fatalf("%s was refused", arg)
	}
}
