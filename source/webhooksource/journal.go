package webhooksource

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// quiet is how long a kind of complaint keeps silent after it was logged: a
// sender that is refused comes back at once, and for ever.
const quiet = 10 * time.Second

// journal holds the complaints that senders can provoke.
type journal struct {
	malformed, unauthorized, open complaint
}

func newJournal(l *slog.Logger) *journal {
	return &journal{
		malformed:    complaint{logger: l},
		unauthorized: complaint{logger: l},
		open:         complaint{logger: l},
	}
}

// complaint logs one kind of warning, the first at once and then no more than
// one in each quiet period.
type complaint struct {
	logger *slog.Logger

	mu     sync.Mutex
	until  time.Time
	unsaid int
}

func (c *complaint) warn(ctx context.Context, msg string, args ...any) {
	unsaid, ok := c.turn(time.Now())
	if !ok {
		return
	}
	if unsaid > 0 {
		args = append(args, "more_since_last", unsaid)
	}
	c.logger.WarnContext(ctx, msg, args...)
}

// turn reports whether to speak now, and how often it was kept from it.
func (c *complaint) turn(now time.Time) (unsaid int, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.Before(c.until) {
		c.unsaid++
		return 0, false
	}
	c.until = now.Add(quiet)
	unsaid, c.unsaid = c.unsaid, 0
	return unsaid, true
}
