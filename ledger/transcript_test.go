package ledger_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
)

// To record the current output, run
//
//	go test ./ledger -run TestTranscripts -rewrite
//
// Times are relative to the start of the transcript; fences are milliseconds since the start.
func TestTranscripts(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatalf("%d transcripts, %v", len(paths), err)
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) { tell(t, path) })
	}
}

func tell(t *testing.T, path string) {
	s := newStory()
	datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
		t.Helper()
		if d.Cmd == "story" {
			s = newStory()
			return ""
		}
		out, err := s.run(d)
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		return out
	})
}

var epoch = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)

type story struct {
	policy   ledger.Policy
	rows     map[ledger.RowKey]*ledger.Row
	attempts map[string]*ledger.Claim // by worker
	now      time.Time
}

func newStory() *story {
	return &story{
		policy: ledger.DefaultPolicy(), rows: map[ledger.RowKey]*ledger.Row{},
		attempts: map[string]*ledger.Claim{}, now: epoch,
	}
}

// The argument at= advances the clock first.
func (s *story) run(d *datadriven.TestData) (string, error) {
	commands := map[string]func(args) (string, error){
		"policy": s.setPolicy, "show": s.show, "crash": s.crash,
		"observe": s.observe, "raise": s.raise, "shape": s.shape,
		"claim": s.claim, "renew": s.renew, "complete": s.complete, "fail": s.fail, "release": s.release, "schedule-verify": s.scheduleVerify,
		"redrive": s.redrive, "reset-order": s.resetOrder, "purge": s.purge,
		"must-act": s.mustAct, "not-found-delay": s.notFoundDelay, "idempotency-key": s.idempotencyKey,
	}
	command := commands[d.Cmd]
	if command == nil {
		return "", fmt.Errorf("unknown command %q", d.Cmd)
	}
	a := args{input: strings.TrimSpace(d.Input), values: map[string]string{}, used: map[string]bool{}}
	for _, arg := range d.CmdArgs {
		a.values[arg.Key] = strings.Join(arg.Vals, ",")
	}
	if a.has("at") {
		d, err := a.duration("at")
		if err != nil {
			return "", err
		}
		s.now = epoch.Add(d)
	}
	out, err := command(a)
	if err != nil {
		return "", err
	}
	for name := range a.values {
		if !a.used[name] {
			return "", fmt.Errorf("%s does not take %q", d.Cmd, name)
		}
	}
	return out, nil
}

// args has a command's arguments: name=value, or a name alone.
type args struct {
	values map[string]string
	used   map[string]bool
	input  string // below the command
}

func (a args) has(name string) bool {
	_, ok := a.values[name]
	a.used[name] = true
	return ok
}

func (a args) text(name, otherwise string) string {
	if a.has(name) {
		return a.values[name]
	}
	return otherwise
}

func (a args) duration(name string) (time.Duration, error) {
	return time.ParseDuration(a.text(name, "0s"))
}

// key parses on=bucket/key.
func (a args) key() ledger.RowKey {
	bucket, key, _ := strings.Cut(a.text("on", "photos/cat.jpg"), "/")
	return ledger.RowKey{Pipeline: "gray", Bucket: bucket, Key: key}
}

func (a args) kind(name, otherwise string) (k event.Kind, err error) {
	err = k.UnmarshalText([]byte(a.text(name, otherwise)))
	return k, err
}

func (a args) time(name string) (time.Time, error) {
	if !a.has(name) {
		return time.Time{}, nil
	}
	d, err := a.duration(name)
	return epoch.Add(d), err
}

func (a args) identity() (ledger.Identity, error) {
	at, err := a.time("mtime")
	return ledger.Identity{VersionID: a.text("version", ""), ETag: a.text("etag", ""), Meta: a.text("meta", ""), ModTime: at}, err
}

func (s *story) row(k ledger.RowKey) ledger.Row {
	if r := s.rows[k]; r != nil {
		return *r
	}
	return ledger.Row{RowKey: k}
}

func (s *story) store(r ledger.Row, format string, a ...any) (string, error) {
	s.rows[r.RowKey] = &r
	return fmt.Sprintf(format, a...) + "\n" + s.describe(&r), nil
}

func (s *story) unchanged(r ledger.Row, format string, a ...any) (string, error) {
	if was := s.row(r.RowKey); !reflect.DeepEqual(was, r) {
		return "", fmt.Errorf("%s: the row was changed to\n%s", fmt.Sprintf(format, a...), s.describe(&r))
	}
	return fmt.Sprintf(format, a...) + "; the row is unchanged", nil
}

func (s *story) attempt(a args) (string, *ledger.Claim, error) {
	name := a.text("by", "")
	at := s.attempts[name]
	if at == nil {
		return name, nil, errors.New("nobody of that name (by=) has claimed anything")
	}
	return name, at, nil
}
