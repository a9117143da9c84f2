package cli

import (
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/source/replaysource"
)

// progress shows how far a replay, an audit or a verification is, where a person watches. Logs are written
// through it, so that the two do not mix.
type progress struct {
	out   io.Writer
	shown bool

	mu  sync.Mutex
	bar *progressbar.ProgressBar

	stop chan struct{}
	work sync.WaitGroup
}

func (a *app) newProgress() *progress {
	return &progress{out: a.Err, shown: isTerminal(a.Err), stop: make(chan struct{})}
}

// Write writes a line of the log above the bar.
func (p *progress) Write(b []byte) (int, error) {
	p.clear()
	return p.out.Write(b)
}

// clear removes the bar until it is drawn again.
func (p *progress) clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bar != nil {
		_ = p.bar.Clear() // at worst the line stands beside the bar
	}
}

// begin shows the bar until end.
func (p *progress) begin(read func() replaysource.Progress, done func() pawl.Stats) {
	if !p.shown {
		return
	}
	p.draw(read().Total)
	p.work.Go(func() {
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-p.stop:
				return
			case <-tick.C:
				p.show(read(), done())
			}
		}
	})
}

// draw makes the bar. A total of -1 makes a spinner.
func (p *progress) draw(total int64, more ...progressbar.Option) {
	p.bar = progressbar.NewOptions64(total, append(more, progressbar.OptionSetWriter(p.out),
		progressbar.OptionClearOnFinish(), progressbar.OptionSetRenderBlankState(true))...)
}

func (p *progress) show(now replaysource.Progress, s pawl.Stats) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bar.Describe(fmt.Sprintf("%d events, %d done, %d dead", now.Events, s.Completed+s.NothingToDo, s.Died))
	at := now.Bytes
	if now.Total > 0 {
		at = min(at, now.Total-1) // the bar ends with the work, not with the reading
	}
	_ = p.bar.Set64(at) // a bar that cannot be drawn harms nothing
}

// end removes the bar.
func (p *progress) end() {
	if p.bar == nil {
		return
	}
	close(p.stop)
	p.work.Wait()
	_ = p.bar.Finish() // a bar that cannot be drawn harms nothing
}

// counter shows how many objects a command has read: by a spinner on a terminal, otherwise
// by a line of the log every lineEvery.
type counter struct {
	log  *slog.Logger
	bar  *progress
	last time.Time
}

func newCounter(log *slog.Logger, bar *progress) *counter {
	if bar.shown {
		bar.draw(-1, progressbar.OptionShowIts(), progressbar.OptionSetItsString("objects"), progressbar.OptionThrottle(100*time.Millisecond))
	}
	return &counter{log: log, bar: bar, last: time.Now()}
}

// show shows a number of objects, and beside it further counts, by name.
func (c *counter) show(objects int64, counts ...any) {
	if !c.bar.shown {
		if time.Since(c.last) >= lineEvery {
			c.last = time.Now()
			c.log.Info("comparing the index with the bucket", append([]any{"objects", objects}, counts...)...)
		}
		return
	}
	text := fmt.Sprintf("%d objects", objects)
	for i := 0; i+1 < len(counts); i += 2 {
		text += fmt.Sprintf(", %d %s", counts[i+1], counts[i])
	}
	c.bar.mu.Lock()
	defer c.bar.mu.Unlock()
	c.bar.bar.Describe(text)
	_ = c.bar.bar.Set64(objects) // a bar that cannot be drawn harms nothing
}
