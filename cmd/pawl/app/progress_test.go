package app

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl/internal/virtualtime"
	"github.com/pawlhq/pawl/source/replaysource"
)

func TestProgressShows(t *testing.T) {
	read := func() replaysource.Progress { return replaysource.Progress{Total: -1, Bytes: 100, Events: 3} }
	describe := func(now replaysource.Progress) string { return fmt.Sprintf("%d events", now.Events) }
	var out bytes.Buffer
	p := &Progress{out: &out, Shown: true, stop: make(chan struct{})}
	p.Begin(read, describe)
	p.show(read(), describe(read()))
	if _, err := p.Write([]byte("a line of the log\n")); err != nil {
		t.Fatal(err)
	}
	p.End()
	for _, want := range []string{"3 events", "a line of the log\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in %q", want, out.String())
		}
	}
}

func TestProgressHiddenWithoutTerminal(t *testing.T) {
	var out bytes.Buffer
	a := &App{Streams: Streams{Err: &out}}
	p := a.NewProgress()
	p.Begin(nil, nil)
	p.End()
	if out.Len() > 0 {
		t.Errorf("output without a terminal: %q", &out)
	}
}

func TestCounter(t *testing.T) {
	var out, log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	p := &Progress{out: &out, Shown: true, stop: make(chan struct{})}
	NewCounter(logger, p).Show(3, "rows", 2)
	if shown := p.Bar.State().Description; shown != "3 objects, 2 rows" || log.Len() > 0 {
		t.Errorf("terminal: %q, log: %q", shown, &log)
	}
	p.End()
	virtualtime.Test(t, func(*testing.T) {
		c := NewCounter(logger, &Progress{})
		c.Show(3, "rows", 2)
		time.Sleep(LogInterval)
		c.Show(4, "rows", 2)
		c.Show(5, "rows", 2)
	})
	if n := strings.Count(log.String(), "\n"); n != 1 || !strings.Contains(log.String(), "objects=4 rows=2") {
		t.Errorf("%d lines: %s", n, &log)
	}
}
