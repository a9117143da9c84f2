package sqlite

import (
	"context"
	"errors"
	"fmt"

	"zombiezen.com/go/sqlite"

	"github.com/pawlhq/pawl/store"
)

type advice struct {
	why       string
	permanent bool // a retry does not help
}

const damaged = "is damaged: restore a backup, or save the readable part with .recover of the sqlite3 shell"

var adviceByCode = map[sqlite.ResultCode]advice{
	sqlite.ResultNotADB:   {"is not a database, or its header is damaged: give another path, or restore the file", true},
	sqlite.ResultCorrupt:  {damaged, true},
	sqlite.ResultReadOnly: {"cannot be written: let this user write to the file and to its folder", true},
	sqlite.ResultCantOpen: {"cannot be opened: let this user read and write the file and its folder", false}, // also if the process has no free file descriptors
	sqlite.ResultPerm:     {"cannot be opened: let this user read and write the file and its folder", true},
	sqlite.ResultBusy:     {"is locked by another process: wait for that process, or stop it (find it with fuser)", false},
	sqlite.ResultIOErr:    {"cannot be read or written: check the disk", false},
	sqlite.ResultFull:     {"cannot grow: free some disk space", false},
}

func (s *Store) refuse(why string, cause error) error {
	if cause == nil {
		return fmt.Errorf("%w: %q %s", store.ErrUnusable, s.path, why)
	}
	return fmt.Errorf("%w: %q %s (%w)", store.ErrUnusable, s.path, why, cause)
}

func (s *Store) explainOpen(ctx context.Context, err error) error {
	switch f, known := adviceByCode[sqlite.ErrCode(err).ToPrimary()]; {
	case ctx.Err() != nil, errors.Is(err, store.ErrUnusable):
		return s.explain(ctx, "open", nil, err)
	case known:
		return s.refuse(f.why, err)
	}
	return s.refuse("cannot be opened", err)
}

func (s *Store) explain(ctx context.Context, what string, kind, err error) error {
	f, known := adviceByCode[sqlite.ErrCode(err).ToPrimary()]
	switch {
	case errors.Is(err, store.ErrUnusable):
		return err
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case known && f.permanent:
		return s.refuse(f.why, err)
	}
	text := fmt.Sprintf("sqlite: %s %q", what, s.path)
	if known {
		text += ": it " + f.why
	}
	if kind != nil {
		return fmt.Errorf("%s: %w (%w)", text, kind, err)
	}
	return fmt.Errorf("%s: %w", text, err)
}
