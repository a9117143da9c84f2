package root

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/cmd/pawl/app"
	"github.com/pawlhq/pawl/cmd/pawl/config"
	"github.com/pawlhq/pawl/cmd/pawl/parts"
	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/source/replaysource"
	"github.com/pawlhq/pawl/source/sourcetest"
	"github.com/pawlhq/pawl/store"
	"github.com/pawlhq/pawl/store/memory"
)

type testLedger struct {
	name string
	rows store.Store
}

func (s testLedger) Open(context.Context) (store.Store, error) { return s.rows, nil }

func (s testLedger) OpenReadOnly(context.Context) (store.Store, error) { return s.rows, nil }

func (s testLedger) CheckExists(context.Context) error {
	if s.name == "lost" {
		return errors.New("no such ledger: create it")
	}
	return nil
}

func (s testLedger) Describe() string { return "the test ledger " + s.name }

type testSource struct {
	File string `yaml:"file" jsonschema:"required"`
}

func (s testSource) Build(_ context.Context, a *parts.Assembly) (pawl.Source, error) {
	if s.File == "none" {
		return nil, errors.New("no events")
	}
	return replaysource.New(replaysource.Config{
		Paths: []string{filepath.Join(a.Dir, s.File)}, Dialect: event.AWS, ShutdownTimeout: a.ShutdownTimeout, Logger: a.Logger,
	})
}

func (s testSource) Describe() string { return "events from " + s.File }

type testAction struct {
	Bell config.Size `yaml:"bell"`
}

var rings atomic.Int64

func (r testAction) Build(ctx context.Context, a *parts.Assembly, p *pawl.Pipeline) error {
	if s, err := a.Ledger(ctx); err != nil || s == nil || a.Objects == nil {
		return errors.New("the assembly is incomplete")
	}
	p.Handler = pawl.HandlerFunc(func(context.Context, *pawl.Task) error {
		rings.Add(int64(r.Bell))
		return nil
	})
	return nil
}

func otherParts() *config.Table {
	rows := memory.New()
	return &config.Table{
		Ledgers: []config.LedgerKind{{
			Name: "fake", Form: "fake:NAME", Parse: func(name, _ string) (any, error) { return testLedger{name, rows}, nil },
		}},
		Sources: []config.Kind{{Name: "queue", Config: testSource{}}, {Name: "stream", Config: testSource{}}},
		Actions: []config.Kind{{Name: "ring", Config: testAction{}}},
	}
}

const otherConfig = `ledger: fake:top
objects: {region: eu-west-1}
sources: [{queue: {file: events.json}}]
pipelines: [{name: bells, match: {bucket: photos}, order: event, ring: {bell: 3B}}]
`

// No command may depend on the parts that Pawl has.
func TestOtherParts(t *testing.T) {
	dir := t.TempDir()
	file, events := filepath.Join(dir, "pawl.yaml"), filepath.Join(dir, "events.json")
	write(t, file, otherConfig)
	write(t, events, sourcetest.Payload("cat.jpg"))
	table := otherParts()
	rings.Store(0)
	for _, tc := range []struct {
		args  string
		want  []string
		rings int64
	}{
		{"run", []string{`"ledger":"the test ledger top"`, `"action":"ring"`, `"queue":"events from events.json"`, `"completed":1`}, 3},
		{"ls", []string{"settled", "s3://photos/cat.jpg"}, 3},
		{"explain s3://photos/cat.jpg", []string{"bells: settled"}, 3},
		{"redrive --force s3://photos/cat.jpg", []string{"redrove 1 row"}, 3},
		{"replay --dialect aws " + events, []string{"effects 1"}, 6},
	} {
		var out bytes.Buffer
		a := &app.App{Streams: app.Streams{In: strings.NewReader(""), Out: &out, Err: &out}, Parts: table}
		code := run(t.Context(), a, append(strings.Fields(tc.args), "-c", file))
		for _, want := range tc.want {
			if code != 0 || !strings.Contains(out.String(), want) || rings.Load() != tc.rings {
				t.Errorf("pawl %s: exit code %d, %d rings: want %d, and %q in:\n%s", tc.args, code, rings.Load(), tc.rings, want, &out)
			}
		}
	}
	if c, err := (&app.App{Parts: table, ConfigFile: file}).OptionalConfig(); err != nil || c.Pipelines[0].Action.Config != any(testAction{3}) {
		t.Errorf("for the doctor: %+v, %v", c, err)
	}
}

func TestOtherPartsErrors(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pawl.yaml")
	for _, tc := range []struct{ command, old, new, want string }{
		{"ls", "fake:top", "fake:lost", "line 1, column 1: ledger: no such ledger: create it"},
		{"ls", "fake:top", "sqlite:x", "line 1, column 9: ledger: unknown kind: want fake:NAME"},
		{"ls", "ledger: fake:top\n", "", "ledger: unknown kind: want fake:NAME"},
		{"run", "events.json", "none", "line 3, column 12: sources[0].queue: no events"},
		{"run", "queue:", "queu:", `line 3, column 12: sources[0]: unknown field "queu": did you mean "queue"?`},
		{"run", "file:", "fill:", `line 3, column 20: sources[0].queue: unknown field "fill": did you mean "file"?`},
		{"run", "{queue: {file: events.json}}", "{}", "line 3, column 11: sources[0]: no source: want one of queue, stream"},
		{"run", "json}}", "json}, stream: {file: x}}", "line 3, column 11: sources[0]: more than one source (queue, stream): use a list entry for each"},
		{"run", "bell: 3B", "bell: low", "line 4, column 79: pipelines[0].ring.bell: want a size above 0"},
		{"run", ", ring: {bell: 3B}", "", "line 4, column 13: pipelines[0]: no action: want one of ring"},
	} {
		write(t, file, strings.Replace(otherConfig, tc.old, tc.new, 1))
		var out bytes.Buffer
		a := &app.App{Streams: app.Streams{In: strings.NewReader(""), Out: &out, Err: &out}, Parts: otherParts()}
		if code := run(t.Context(), a, []string{tc.command, "-c", file}); code != app.ExitUsage || !strings.Contains(out.String(), tc.want) {
			t.Errorf("%s: exit code %d, want %q in:\n%s", tc.new, code, tc.want, &out)
		}
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
