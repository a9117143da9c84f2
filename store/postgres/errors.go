package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pawlhq/pawl/store"
)

type advice struct {
	why       string
	permanent bool // a retry does not help
}

const (
	readOnlyWhy = "is read-only, perhaps a replica: give the URL of the primary server"
	readOnly    = "25006"
	deadlock    = "40P01"
	denied      = "42501"
)

// https://www.postgresql.org/docs/current/errcodes-appendix.html
var adviceByCode = map[string]advice{
	"28P01":  {"rejects the password: correct the user or the password", true},
	"28000":  {"rejects the user: correct the user, or permit it in pg_hba.conf", true},
	"3D000":  {"does not exist: create the database (createdb), or correct its name", true},
	denied:   {"denies the user a privilege on its tables: grant it", true},
	"42P01":  {"has lost its tables: restore them; or stop Pawl, drop its schema, and start Pawl again to create new ones", true},
	"3F000":  {"has lost its schema: restore it, or restart Pawl to create a new one", true},
	readOnly: {readOnlyWhy, false}, // also during a failover
	"53300":  {"has no connection left: raise max_connections, or lower pool_max_conns in the URLs of its users", false},
	"53100":  {"has no disk space left: free some disk space", false},
	"55P03":  {"has a record or table that another session keeps locked: find the session with an open transaction in pg_stat_activity", false},
	"57P03":  {"is starting or shutting down", false},
	"57P01":  {"is shutting down", false},
}

// unsent wraps an error from before COMMIT was sent: nothing has landed.
type unsent struct{ error }

func (e unsent) Unwrap() error { return e.error }

func codeOf(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code
	}
	return ""
}

func (s *Store) unusable(why string, cause error) error {
	if cause == nil {
		return fmt.Errorf("%w: the database at %s %s", store.ErrUnusable, s, why)
	}
	return fmt.Errorf("%w: the database at %s %s (%w)", store.ErrUnusable, s, why, oneLine{cause})
}

type oneLine struct{ error }

func (e oneLine) Error() string {
	if pg, ok := errors.AsType[*pgconn.PgError](e.error); ok {
		return fmt.Sprintf("%s: %s, SQLSTATE %s", pg.Severity, pg.Message, pg.Code)
	}
	return strings.Join(strings.Fields(e.error.Error()), " ")
}

func (e oneLine) Unwrap() error { return e.error }

func (s *Store) explainOpen(ctx context.Context, err error) error {
	switch f, known := adviceByCode[codeOf(err)]; {
	case ctx.Err() != nil, errors.Is(err, store.ErrUnusable):
		return s.explain(ctx, "open", err)
	case codeOf(err) == denied:
		return s.unusable("has tables that the user may not use: "+s.grants(), err)
	case known:
		return s.unusable(f.why, err)
	}
	if codeOf(err) != "" {
		return s.unusable("cannot be opened", err)
	}
	if _, unconnected := errors.AsType[*pgconn.ConnectError](err); !unconnected && errors.Is(err, context.DeadlineExceeded) {
		return s.unusable("does not answer: it is overloaded, or another session keeps a table locked (pg_stat_activity)", err)
	}
	return s.unusable("cannot be reached: check host, port and network, and that the server runs", err)
}

func (s *Store) call(ctx context.Context, what string, f func(ctx context.Context) error) error {
	bounded, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if ctx.Err() != nil {
		return s.explain(ctx, what, unsent{context.Cause(ctx)})
	}
	return s.explain(ctx, what, f(bounded))
}

func (s *Store) explain(ctx context.Context, what string, err error) error {
	code := codeOf(err)
	if code == readOnly {
		s.pool.Reset() // the name now refers to another server
		s.handlers.Reset()
	}
	f, known := adviceByCode[code]
	switch {
	case err == nil, errors.Is(err, store.ErrUnusable):
		return err
	case known && f.permanent:
		return s.unusable(f.why, err)
	case ctx.Err() != nil:
		return fmt.Errorf("%w: %s at %s: %w", kind(err), what, s, context.Cause(ctx))
	case known:
		return fmt.Errorf("%w: %s: the database at %s %s (%w)", kind(err), what, s, f.why, oneLine{err})
	}
	return fmt.Errorf("%w: %s at %s: %w", kind(err), what, s, oneLine{err})
}

// The server rolls back a transaction after every error that does not end the session.
// pgconn.SafeToRetry is not usable, because it returns true for a lost answer (pgx 5.12).
func kind(err error) error {
	_, unconnected := errors.AsType[*pgconn.ConnectError](err)
	_, early := errors.AsType[unsent](err)
	pg, answered := errors.AsType[*pgconn.PgError](err)
	switch {
	case answered && pg.SeverityUnlocalized == "ERROR":
		switch pg.Code[:2] {
		case "22", "23", "54", "P0": // data, constraints, limits, triggers
			return store.ErrRejected
		}
		return store.ErrThrottled
	case unconnected, early:
		return store.ErrThrottled
	}
	return store.ErrUnclear
}

// kind is the result of the change before the read.
func readFailed(kind, err error) error {
	if errors.Is(err, store.ErrUnusable) {
		return err
	}
	return fmt.Errorf("%w: load the records that refused changes: %v", kind, err)
}
