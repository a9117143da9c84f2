package webhooksource

import (
	"context"
	"log/slog"
	"strconv"
	"strings"

	"github.com/pawlhq/pawl/internal/logthrottle"
)

// Frequent warnings of one reason must not suppress others.
type warnings struct {
	malformed, unknownDialect, cutOff, tooLarge, compressed       *logthrottle.Warning
	crossOrigin, unauthorized, notAcknowledged, timedOut, evicted *logthrottle.Warning
	accept, server                                                *logthrottle.Warning
}

func newWarnings(l *slog.Logger) *warnings {
	w := func() *logthrottle.Warning { return logthrottle.New(l) }
	return &warnings{
		malformed: w(), unknownDialect: w(), cutOff: w(), tooLarge: w(), compressed: w(),
		crossOrigin: w(), unauthorized: w(), notAcknowledged: w(), timedOut: w(), evicted: w(), accept: w(), server: w(),
	}
}

// net/http calls Write once per line. Failed accepts are logged separately, because net/http repeats them
// every second.
func (ws *warnings) Write(line []byte) (int, error) {
	msg, w := strings.TrimSpace(string(line)), ws.server
	if strings.HasPrefix(msg, "http: Accept error") {
		w = ws.accept
	}
	w.Log(context.Background(), msg)
	return len(line), nil
}

func excerpt(payload []byte) string {
	const maxLen = 200
	cut := len(payload) > maxLen
	s := strings.ToValidUTF8(string(payload[:min(maxLen, len(payload))]), "\uFFFD")
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
