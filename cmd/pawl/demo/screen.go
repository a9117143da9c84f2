package demo

import (
	"fmt"
	"io"
	"sync"

	"github.com/schollz/progressbar/v3"
)

type screen struct {
	out      io.Writer
	terminal bool

	mu  sync.Mutex
	bar *progressbar.ProgressBar
}

func (s *screen) printText(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clear()
	s.write(format, args...)
}

func (s *screen) done(format string, args ...any) { s.printText("  ✓ "+format+"\n", args...) }

func (s *screen) failed(format string, args ...any) { s.printText("  ✗ "+format+"\n", args...) }

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

func (s *screen) progress(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bar != nil {
		_ = s.bar.Set(n) // the demo does not depend on the bar
	}
}

func (s *screen) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clear()
	s.bar = nil
}

// clear erases the bar until the next progress.
func (s *screen) clear() {
	if s.bar != nil {
		_ = s.bar.Clear()
	}
}

// write ignores errors, because the reader may have closed the stream.
func (s *screen) write(format string, args ...any) { _, _ = fmt.Fprintf(s.out, format, args...) }

func plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
