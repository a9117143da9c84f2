package sqliteledger

import (
	"context"
	"errors"
	"fmt"

	"zombiezen.com/go/sqlite"

	"github.com/pawlhq/pawl/event"
	"github.com/pawlhq/pawl/ledger"
)

// fault is what may be wrong with a file, and what to do.
type fault struct {
	why     string
	lasting bool // it will not get better by itself
}

const damaged = "is damaged: restore a backup, or save what can be read with .recover of the sqlite3 shell"

var faults = map[sqlite.ResultCode]fault{
	sqlite.ResultNotADB:   {"is not a ledger, or its header is damaged: give another path, or restore the file", true},
	sqlite.ResultCorrupt:  {damaged, true},
	sqlite.ResultReadOnly: {"cannot be written: let this user write to the file and to its folder", true},
	sqlite.ResultCantOpen: {"cannot be opened: let this user read and write the file and its folder", false}, // or files are short
	sqlite.ResultPerm:     {"cannot be opened: let this user read and write the file and its folder", true},
	sqlite.ResultBusy:     {"is locked by another process: end that one, or wait for it (fuser names it)", false},
	sqlite.ResultIOErr:    {"cannot be read or written: check the disk", false},
	sqlite.ResultFull:     {"cannot grow: make room on its disk", false},
}

// refuse says why the file cannot serve. cause may be nil.
func (s *Store) refuse(why string, cause error) error {
	if cause == nil {
		return fmt.Errorf("%w: %s %s", ledger.ErrUnusable, event.Quote(s.path), why)
	}
	return fmt.Errorf("%w: %s %s (%w)", ledger.ErrUnusable, event.Quote(s.path), why, cause)
}

// explainOpen explains why the file could not be opened. All but the caller's
// own change of mind wraps [ledger.ErrUnusable].
func (s *Store) explainOpen(ctx context.Context, err error) error {
	switch f, known := faults[sqlite.ErrCode(err).ToPrimary()]; {
	case ctx.Err() != nil, errors.Is(err, ledger.ErrUnusable):
		return s.explain(ctx, "open", err)
	case known:
		return s.refuse(f.why, err)
	}
	return s.refuse("cannot be opened", err)
}

// explain turns an error of SQLite into one for people. What cannot get better
// by itself wraps [ledger.ErrUnusable].
func (s *Store) explain(ctx context.Context, what string, err error) error {
	switch f, known := faults[sqlite.ErrCode(err).ToPrimary()]; {
	case errors.Is(err, ledger.ErrUnusable):
		return err
	case ctx.Err() != nil:
		return fmt.Errorf("sqliteledger: %s %s: %w", what, event.Quote(s.path), context.Cause(ctx))
	case known && f.lasting:
		return s.refuse(f.why, err)
	case known:
		return fmt.Errorf("sqliteledger: %s: %s %s (%w)", what, event.Quote(s.path), f.why, err)
	}
	return fmt.Errorf("sqliteledger: %s %s: %w", what, event.Quote(s.path), err)
}
