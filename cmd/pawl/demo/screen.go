package demo

import (
	"fmt"
	"io"
	"sync"

	"github.com/schollz/progressbar/v3"
)

// screen tells people what goes on, a line for each thing that is done. What is
// not done yet shows as a bar, on a terminal only.
type screen struct {
	out      io.Writer
	terminal bool

	mu  sync.Mutex
	bar *progressbar.ProgressBar
}

// say prints text as it is.
func (s *screen) printText(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clear()
	s.write(format, args...)
}

// done prints a line about something that went as it should.
func (s *screen) done(format string, args ...any) { s.printText("  ✓ "+format+"\n", args...) }

// failed prints a line about something that did not.
func (s *screen) failed(format string, args ...any) { s.printText("  ✗ "+format+"\n", args...) }

// begin shows a bar from now on, in place of the one before.
func (s *screen) begin(what string, most int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.terminal {
		return
	}
	s.clear()
	s.bar = progressbar.NewOptions(most, progressbar.OptionSetWriter(s.out), progressbar.OptionSetDescription("  … "+what),
		progressbar.OptionSetWidth(30), progressbar.OptionShowCount(), progressbar.OptionSetPredictTime(false),
		progressbar.OptionSetElapsedTime(false), progressbar.OptionClearOnFinish())
}

// progress says how far it is.
func (s *screen) progress(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bar != nil {
		_ = s.bar.Set(n) // a picture of what goes on, and nothing more
	}
}

// end takes the bar away.
func (s *screen) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clear()
	s.bar = nil
}

// clear makes room where the bar stands. It is drawn again when it moves.
func (s *screen) clear() {
	if s.bar != nil {
		_ = s.bar.Clear()
	}
}

// print writes to a person. That one has gone away is no reason to fail.
func (s *screen) write(format string, args ...any) { _, _ = fmt.Fprintf(s.out, format, args...) }

// some counts things.
func plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
