package cli

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/source/replaysource"
)

// progress shows how far a replay or an audit is, where a person watches. Logs are written
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
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bar != nil {
		_ = p.bar.Clear() // at worst the line stands beside the bar
	}
	return p.out.Write(b)
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
