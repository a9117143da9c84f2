package files

import (
	"context"
	"fmt"
	"log/slog"
)

func (s *Service) logTransition(ctx context.Context, from, to *File, seen ObjectInfo) {
	if s.Logger == nil || from.State == to.State {
		return
	}
	level, found := slog.LevelDebug, "nothing"
	if to.State == Lost {
		level = slog.LevelWarn
	}
	if seen.Found {
		found = fmt.Sprintf("%d bytes, SHA-256 %x", seen.Size, seen.SHA256)
	}
	s.Logger.LogAttrs(ctx, level, "files: the state of a file changed", slog.String("file", to.ID), slog.String("entity", to.Entity), slog.String("key", to.Key),
		slog.String("from", from.State.String()), slog.String("to", to.State.String()),
		slog.String("promised", fmt.Sprintf("%d bytes, SHA-256 %x", to.Size, to.SHA256)), slog.String("found", found))
}
