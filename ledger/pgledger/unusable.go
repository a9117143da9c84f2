package pgledger

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pawlhq/pawl/ledger"
)

// fault is what may be wrong with a database, and what to do.
type fault struct {
	why     string
	lasting bool // it will not get better by itself
}

const readOnlyWhy = "is read-only, a replica perhaps: give the URL of the primary server"

// faults go by SQLSTATE. https://www.postgresql.org/docs/current/errcodes-appendix.html
var faults = map[string]fault{
	"28P01": {"refuses the password: correct the user or the password", true},
	"28000": {"refuses the user: correct it, or let it in (pg_hba.conf)", true},
	"3D000": {"does not exist: make the database (createdb), or correct its name", true},
	"42501": {"denies the user a privilege on its tables: grant it", true},
	"42P01": {"has lost its tables: restore them; or stop Pawl, drop what is left of its schema, and start it again to make it anew", true},
	"3F000": {"has lost its schema: restore it, or stop Pawl and start it again to make it anew", true},
	"25006": {readOnlyWhy, false}, // or a failover is under way
	"53300": {"has no connection left: raise max_connections, or lower pool_max_conns in the URLs of its users", false},
	"53100": {"has no disk space left: make room", false},
	"55P03": {"has a row, or a table, that another session keeps locked: look for one whose transaction stays open (pg_stat_activity)", false},
	"57P03": {"is starting, or ending", false},
	"57P01": {"is ending", false},
}

func codeOf(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

func denied(err error) bool { return codeOf(err) == "42501" }

// refuse says why the database cannot serve. cause may be nil.
func (s *Store) refuse(why string, cause error) error {
	if cause == nil {
		return fmt.Errorf("%w: the ledger at %s %s", ledger.ErrUnusable, s, why)
	}
	return fmt.Errorf("%w: the ledger at %s %s (%s)", ledger.ErrUnusable, s, why, reason(cause))
}

// reason is the server's own words, on one line, where it has said something.
func reason(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return fmt.Sprintf("%s: %s, SQLSTATE %s", e.Severity, e.Message, e.Code)
	}
	return strings.Join(strings.Fields(err.Error()), " ")
}

// explainOpen explains why the ledger could not be opened. All but the caller's own
// change of mind wraps [ledger.ErrUnusable].
func (s *Store) explainOpen(ctx context.Context, err error) error {
	switch f, known := faults[codeOf(err)]; {
	case ctx.Err() != nil, errors.Is(err, ledger.ErrUnusable):
		return s.explain(ctx, "open", err)
	case denied(err):
		return s.refuse("has tables that the user may not use: "+s.grants(), err)
	case known:
		return s.refuse(f.why, err)
	}
	if codeOf(err) != "" {
		return s.refuse("cannot be opened", err)
	}
	if _, unconnected := errors.AsType[*pgconn.ConnectError](err); !unconnected && errors.Is(err, context.DeadlineExceeded) {
		return s.refuse("does not answer: it has too much to do, or another session keeps locked what is needed (pg_stat_activity)", err)
	}
	return s.refuse("cannot be reached: check host, port and network, and that the server runs", err)
}

// explain turns an error into one for people. What cannot get better by itself
// wraps [ledger.ErrUnusable].
func (s *Store) explain(ctx context.Context, what string, err error) error {
	code := codeOf(err)
	if code == "25006" {
		s.pool.Reset() // after a failover the name leads to another server
		s.effects.Reset()
	}
	switch f, known := faults[code]; {
	case errors.Is(err, ledger.ErrUnusable):
		return err
	case ctx.Err() != nil:
		return fmt.Errorf("pgledger: %s: %w", what, context.Cause(ctx))
	case known && f.lasting:
		return s.refuse(f.why, err)
	case known:
		return fmt.Errorf("pgledger: %s: the ledger at %s %s (%s)", what, s, f.why, reason(err))
	}
	return fmt.Errorf("pgledger: %s at %s: %w", what, s, err)
}
