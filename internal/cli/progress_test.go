package cli

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/source/replaysource"
)

func TestProgressShows(t *testing.T) {
	read := func() replaysource.Progress { return replaysource.Progress{Total: -1, Bytes: 100, Events: 3} }
	done := func() pawl.Stats { return pawl.Stats{Completed: 1, NothingToDo: 1, Died: 1} }
	var out bytes.Buffer
	p := &progress{out: &out, shown: true, stop: make(chan struct{})}
	p.begin(read, done)
	p.show(read(), done())
	if _, err := p.Write([]byte("a line of the log\n")); err != nil {
		t.Fatal(err)
	}
	p.end()
	for _, want := range []string{"3 events, 2 done, 1 dead", "a line of the log\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in %q", want, out.String())
		}
	}
}

func TestProgressIsQuiet(t *testing.T) {
	var out bytes.Buffer
	a := &app{Streams: Streams{Err: &out}}
	p := a.newProgress()
	p.begin(nil, nil)
	p.end()
	if out.Len() > 0 {
		t.Errorf("no terminal, and yet: %q", &out)
	}
}

func TestProgressOfVerify(t *testing.T) {
	var out bytes.Buffer
	p := &progress{out: &out, shown: true, stop: make(chan struct{})}
	p.draw(-1)
	p.showVerified("clicks", 7)
	p.clear()
	p.end()
	if !strings.Contains(out.String(), "clicks: 7 objects") {
		t.Errorf("the bar shows %q", &out)
	}
	quiet := (&app{Streams: Streams{Err: &out}}).newProgress()
	out.Reset()
	quiet.showVerified("clicks", 7)
	quiet.clear()
	quiet.end()
	if out.Len() > 0 {
		t.Errorf("no terminal, and yet: %q", &out)
	}
}

// TestCounter checks that a command shows its counts on a terminal, and elsewhere in the log.
func TestCounter(t *testing.T) {
	var out, log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	p := &progress{out: &out, shown: true, stop: make(chan struct{})}
	newCounter(logger, p).show(3, "rows", 2)
	if shown := p.bar.State().Description; shown != "3 objects, 2 rows" || log.Len() > 0 {
		t.Errorf("terminal: %q, log: %q", shown, &log)
	}
	p.end()
	c := newCounter(logger, &progress{})
	c.show(3, "rows", 2)
	if log.Len() > 0 {
		t.Errorf("%s\nwant no line before %s", &log, lineEvery)
	}
	c.last = c.last.Add(-lineEvery)
	c.show(4, "rows", 2)
	c.show(5, "rows", 2)
	if n := strings.Count(log.String(), "\n"); n != 1 || !strings.Contains(log.String(), "objects=4 rows=2") {
		t.Errorf("%d lines: %s", n, &log)
	}
}
