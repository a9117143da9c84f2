package loadaction

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pawlhq/pawl"
)

// place finds where COPY stood: "COPY exports, line 3, column n: "abc"".
var place = regexp.MustCompile(`^COPY .*?, line (\d+)(?:, column (.*?))?(?:: (".*"|null input))?$`)

// explain tells what of an error lies with the file, by its line, column and value,
// and what with the database, which every file would meet.
func (l *loader) explain(err error, c *content) error {
	var e *pgconn.PgError
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &e):
		return pawl.Outage(fmt.Errorf("the table %s: %w", l.Table, err)) // the connection
	case e.Code[:2] == "22" || e.Code[:2] == "23":
		return pawl.Permanent(l.misfit(e, c))
	case e.Code[:2] == "40": // a deadlock
		return fmt.Errorf("the table %s: %w", l.Table, err)
	case e.Code == "42501":
		return pawl.Outage(fmt.Errorf("the user may not write to the table %s: GRANT SELECT, INSERT, DELETE ON %[1]s (%s)", l.Table, e.Message))
	case e.Code[:2] == "42":
		return pawl.Outage(fmt.Errorf("the table %s has changed: mend it, or start Pawl again (%s)", l.Table, e.Message))
	}
	return pawl.Outage(fmt.Errorf("the table %s: %w", l.Table, err))
}

// misfit says what of the file does not fit the table.
func (l *loader) misfit(e *pgconn.PgError, c *content) error {
	what := e.Message
	if e.Detail != "" {
		what += ": " + clip(e.Detail)
	}
	m := place.FindStringSubmatch(e.Where)
	if m == nil || c == nil {
		return fmt.Errorf("the table %s refuses it: %s", l.Table, what)
	}
	if strings.HasPrefix(e.Message, "missing data for column ") {
		return fmt.Errorf("%s %s has too few values: the first line names %d columns", c.line, m[1], len(c.columns))
	}
	at := c.line + " " + m[1]
	if m[2] != "" {
		at += ", column " + m[2]
	}
	if m[3] != "" && m[2] != "" {
		at += ", value " + clip(m[3])
	}
	return fmt.Errorf("%s: %s", at, what)
}

func itoa(n int) string { return strconv.Itoa(n) }
