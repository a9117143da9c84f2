package app

import (
	"io"
	"log/slog"
	"os"

	"golang.org/x/term"
)

// Logger returns a logger that writes text to w if standard error is a terminal and --json is not set,
// otherwise JSON. --log-level overrides level.
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

// IsTerminal reports whether w is a terminal.
func IsTerminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// TerminalWidth returns the number of columns, or 0 if w is no terminal.
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
