package loadaction

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pawlhq/pawl"
)

// copyPosition matches the context of an error, which may begin with that of a trigger:
// COPY exports, line 3, column n: "abc".
var copyPosition = regexp.MustCompile(`(?m)^COPY .*?, line (\d+)(?:, column (.*?))?(?:: (".*"|null input))?$`)

// The file may cause these errors: unsupported features, triggers, rollbacks (deadlocks), checks
// of views, and limits.
// https://www.postgresql.org/docs/current/errcodes-appendix.html
var maybeFileErrors = map[string]bool{"0A": true, "21": true, "2F": true, "38": true, "39": true, "40": true, "44": true, "54": true, "P0": true}

// explain reports an error of the file with line, column and value. An error of the database
// would occur for every file, so it is an outage. If either may be the cause, the attempt counts
// as failed. Otherwise Pawl would retry a bad file without end.
func (l *loader) explain(err error, c *content) error {
	var e *pgconn.PgError
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &e):
		return pawl.Outage(fmt.Errorf("the table %s: %w", l.Table, err))
	case e.Code[:2] == "22" || e.Code == "23502" || e.Code == "23514":
		return pawl.Permanent(l.fileError(e, c))
	case e.Code[:2] == "23": // another file may bring the missing row, or the conflicting row may go
		return l.fileError(e, c)
	case maybeFileErrors[e.Code[:2]] || e.Code == "57014":
		return l.fileError(e, c)
	case e.Code == "25006":
		l.Pool.Reset() // after a failover, the name resolves to another server
	case e.Code == "55P03":
		return pawl.Outage(fmt.Errorf("the table %s, or rows of this object, are locked by another session: find the open transaction in pg_stat_activity: %w", l.Table, err))
	case e.Code == "42501":
		return pawl.Outage(fmt.Errorf("the user may not write to the table %s: GRANT SELECT, INSERT, DELETE ON %[1]s (%s)", l.Table, e.Message))
	case e.Code[:2] == "42":
		return pawl.Outage(fmt.Errorf("the table %s is missing or has changed: restore it, or correct the configuration (%s)", l.Table, e.Message))
	}
	return pawl.Outage(fmt.Errorf("the table %s: %w", l.Table, err))
}

func (l *loader) fileError(e *pgconn.PgError, c *content) error {
	what := e.Message
	if e.Detail != "" {
		what += ": " + truncate(e.Detail)
	}
	m := copyPosition.FindStringSubmatch(e.Where)
	if m == nil || c == nil {
		return fmt.Errorf("the table %s rejects the rows: %s", l.Table, what)
	}
	if strings.HasPrefix(e.Message, "missing data for column ") {
		return fmt.Errorf("%s %s has too few values: the first line names %d columns", c.line, m[1], len(c.names))
	}
	at := c.line + " " + m[1]
	if m[2] != "" {
		at += ", column " + m[2]
	}
	if m[3] != "" && m[2] != "" {
		at += ", value " + truncate(m[3])
	}
	return fmt.Errorf("%s: %s", at, what)
}
