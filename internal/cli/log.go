package cli

import (
	"io"
	"log/slog"
	"os"

	"golang.org/x/term"
)

// logger writes to w: text where the command's standard error is a terminal and
// nobody asked for JSON, JSON otherwise. level is what is logged unless --log-level says so.
func (a *app) logger(w io.Writer, level slog.Level) (*slog.Logger, error) {
	if a.logLevel != "" {
		if err := level.UnmarshalText([]byte(a.logLevel)); err != nil {
			return nil, usage("--log-level %q: want debug, info, warn or error", a.logLevel)
		}
	}
	options := &slog.HandlerOptions{Level: level}
	if isTerminal(a.Err) && !a.json {
		return slog.New(slog.NewTextHandler(w, options)), nil
	}
	return slog.New(slog.NewJSONHandler(w, options)), nil
}

// isTerminal reports that a person watches what is written to w, or types what
// is read from it.
func isTerminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// terminalWidth returns how many characters fit into a line, or 0 where there is
// no limit.
func terminalWidth(w any) int {
	if !isTerminal(w) {
		return 0
	}
	width, _, err := term.GetSize(int(w.(*os.File).Fd()))
	if err != nil {
		return 0
	}
	return width
}
