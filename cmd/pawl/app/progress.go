package app

import (
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/pawlhq/pawl/source/replaysource"
)

// Progress is a progress bar. Loggers write through it, so that log lines do not mix with the bar.
type Progress struct {
	out   io.Writer
	Shown bool

	Mu  sync.Mutex
	Bar *progressbar.ProgressBar

	stop chan struct{}
	work sync.WaitGroup
}

// NewProgress returns a bar on standard error, hidden unless that is a terminal.
func (a *App) NewProgress() *Progress {
	return &Progress{out: a.Err, Shown: IsTerminal(a.Err), stop: make(chan struct{})}
}

// Write writes a line of the log above the bar.
func (p *Progress) Write(b []byte) (int, error) {
	p.Clear()
	return p.out.Write(b)
}

// Clear removes the bar until it is drawn again.
func (p *Progress) Clear() {
	p.Mu.Lock()
	defer p.Mu.Unlock()
	if p.Bar != nil {
		_ = p.Bar.Clear() // if it fails, the log line follows the bar
	}
}

// Begin shows the bar until End, with the description of the progress.
func (p *Progress) Begin(read func() replaysource.Progress, describe func(replaysource.Progress) string) {
	if !p.Shown {
		return
	}
	p.Draw(read().Total)
	p.work.Go(func() {
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-p.stop:
				return
			case <-tick.C:
				now := read()
				p.show(now, describe(now))
			}
		}
	})
}

// Draw creates the bar, or a spinner if total is -1.
func (p *Progress) Draw(total int64, more ...progressbar.Option) {
	p.Bar = progressbar.NewOptions64(total, append(more, progressbar.OptionSetWriter(p.out),
		progressbar.OptionClearOnFinish(), progressbar.OptionSetRenderBlankState(true))...)
}

func (p *Progress) show(now replaysource.Progress, description string) {
	p.Mu.Lock()
	defer p.Mu.Unlock()
	p.Bar.Describe(description)
	at := now.Bytes
	if now.Total > 0 {
		at = min(at, now.Total-1) // only End completes the bar
	}
	_ = p.Bar.Set64(at) // harmless
}

// End removes the bar.
func (p *Progress) End() {
	if p.Bar == nil {
		return
	}
	close(p.stop)
	p.work.Wait()
	_ = p.Bar.Finish() // harmless
}

// Counter shows numbers of objects in a spinner on a terminal, and otherwise in the log.
type Counter struct {
	log  *slog.Logger
	bar  *Progress
	last time.Time
}

// NewCounter returns a counter on bar, or in log.
func NewCounter(log *slog.Logger, bar *Progress) *Counter {
	if bar.Shown {
		bar.Draw(-1, progressbar.OptionShowIts(), progressbar.OptionSetItsString("objects"), progressbar.OptionThrottle(100*time.Millisecond))
	}
	return &Counter{log: log, bar: bar, last: time.Now()}
}

// Show shows the number of objects, and counts: pairs of a name and a number.
func (c *Counter) Show(objects int64, counts ...any) {
	if !c.bar.Shown {
		if time.Since(c.last) >= LogInterval {
			c.last = time.Now()
			c.log.Info("comparing the index with the bucket", append([]any{"objects", objects}, counts...)...)
		}
		return
	}
	text := fmt.Sprintf("%d objects", objects)
	for i := 0; i+1 < len(counts); i += 2 {
		text += fmt.Sprintf(", %d %s", counts[i+1], counts[i])
	}
	c.bar.Mu.Lock()
	defer c.bar.Mu.Unlock()
	c.bar.Bar.Describe(text)
	_ = c.bar.Bar.Set64(objects) // harmless
}

// LogInterval is the interval between log lines about progress.
const LogInterval = 10 * time.Second

// LogLevel returns warn if the bar is shown, otherwise info.
func (p *Progress) LogLevel() slog.Level {
	if p.Shown {
		return slog.LevelWarn
	}
	return slog.LevelInfo
}
