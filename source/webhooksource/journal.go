package webhooksource

import (
	"context"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"
)

// quiet is how long a kind of complaint keeps silent after it was logged: a
// sender that is refused comes back at once, and for ever.
const quiet = 10 * time.Second

// journal holds the complaints that senders can provoke: one for each reason,
// so that none keeps another from being logged.
type journal struct {
	malformed, unknown, cutOff, tooLarge, compressed complaint
	foreign, unauthorized, open                      complaint
}

func newJournal(l *slog.Logger) *journal {
	c := func() complaint { return complaint{logger: l} }
	return &journal{
		malformed: c(), unknown: c(), cutOff: c(), tooLarge: c(), compressed: c(),
		foreign: c(), unauthorized: c(), open: c(),
	}
}

// excerpt is the beginning of a payload, for a person to know it by: on one
// line, and with nothing in it that could drive a terminal.
func excerpt(payload []byte) string {
	const most = 200
	cut := len(payload) > most
	s := strings.ToValidUTF8(string(payload[:min(most, len(payload))]), "\uFFFD")
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\r' || r == '\t':
			return ' '
		case !strconv.IsPrint(r):
			return '\uFFFD'
		}
		return r
	}, s)
	if cut {
		s += "..."
	}
	return s
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
