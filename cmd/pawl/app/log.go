package app

import (
	"io"
	"log/slog"
	"os"

	"golang.org/x/term"
)

// Logger writes to w: text where the command's standard error is a terminal and
// nobody asked for JSON, JSON otherwise. level is what is logged unless --log-level says so.
func (a *App) Logger(w io.Writer, level slog.Level) (*slog.Logger, error) {
	if a.LogLevel != "" {
		if err := level.UnmarshalText([]byte(a.LogLevel)); err != nil {
			return nil, Usage("--log-level %q: want debug, info, warn or error", a.LogLevel)
		}
	}
	options := &slog.HandlerOptions{Level: level}
	if IsTerminal(a.Err) && !a.JSON {
		return slog.New(slog.NewTextHandler(w, options)), nil
	}
	return slog.New(slog.NewJSONHandler(w, options)), nil
}

// IsTerminal reports that a person watches what is written to w, or types what
// is read from it.
func IsTerminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// TerminalWidth returns how many characters fit into a line, or 0 where there is
// no limit.
func TerminalWidth(w any) int {
	if !IsTerminal(w) {
		return 0
	}
	width, _, err := term.GetSize(int(w.(*os.File).Fd()))
	if err != nil {
		return 0
	}
	return width
}
