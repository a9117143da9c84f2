package loadaction

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl/event"
)

type table struct {
	name    string // as configured
	source  column // no kind: the table has no such column
	columns []column
}

type column struct {
	name, kind string // of a domain: its base type
	hasDefault bool
}

const tableSQL = `SELECT attname, format_type(CASE typtype WHEN 'd' THEN typbasetype ELSE atttypid END, NULL),
		atthasdef OR attidentity <> '' OR attgenerated <> '', attgenerated <> ''
	FROM pg_attribute JOIN pg_type t ON t.oid = atttypid
	WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped ORDER BY attnum`

const indexSQL = `SELECT to_regclass($1)::text, EXISTS (SELECT FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
	WHERE i.indrelid = to_regclass($1) AND i.indpred IS NULL AND a.attname = $2)`

func (l *loader) readTable(rows pgx.Rows) (*table, error) {
	t := &table{name: l.Table, source: column{name: l.Source}}
	var c column
	var generated bool
	_, err := pgx.ForEachRow(rows, []any{&c.name, &c.kind, &c.hasDefault, &generated}, func() error {
		switch {
		case c.name == l.Source:
			t.source = c
		case !generated:
			t.columns = append(t.columns, c)
		}
		return nil
	})
	return t, err
}

func (l *loader) checkTable(ctx context.Context) error {
	rows, err := l.Pool.Query(ctx, tableSQL, l.table.Sanitize())
	if err != nil {
		return l.explain(err, nil)
	}
	t, err := l.readTable(rows)
	switch {
	case err != nil:
		return l.explain(err, nil)
	case len(t.columns) == 0 && t.source.kind == "":
		return fmt.Errorf("load: there is no table %s: create it, or correct its name", l.Table)
	case t.source.kind != "text" && t.source.kind != "character varying":
		return fmt.Errorf("load: the table %s needs a text column %s for the URL of each row's object (ALTER TABLE %[1]s ADD %[3]s text)",
			l.Table, event.Quote(l.Source), pgx.Identifier{l.Source}.Sanitize())
	}
	var indexed bool
	if err := l.Pool.QueryRow(ctx, indexSQL, l.table.Sanitize(), l.Source).Scan(&l.target, &indexed); err != nil {
		return l.explain(err, nil)
	}
	if !indexed {
		l.Logger.Warn("the source column has no index, so each load reads the whole table",
			"table", l.Table, "do", fmt.Sprintf("CREATE INDEX ON %s (%s)", l.table.Sanitize(), pgx.Identifier{l.Source}.Sanitize()))
	}
	return nil
}

func (t *table) check(names []string, where string) error {
	for i, name := range names {
		switch {
		case name == t.source.name:
			return invalidFile("%s: the column %s is reserved for Pawl: remove it from the file", where, event.Quote(name))
		case slices.Contains(names[:i], name):
			return invalidFile("%s: the column %s appears twice", where, event.Quote(name))
		case !slices.ContainsFunc(t.columns, named(name)):
			return invalidFile("%s: the table %s has no column %s: it has %s", where, t.name, event.Quote(truncate(name)), t.list())
		}
	}
	return nil
}

func (t *table) columnsFor(c *content) (all []column, err error) {
	if err := t.check(c.names, c.where); err != nil {
		return nil, err
	}
	if c.byName {
		for _, col := range t.columns {
			if !col.hasDefault || slices.Contains(c.names, col.name) {
				all = append(all, col)
			}
		}
		return all, nil
	}
	for _, name := range c.names {
		all = append(all, t.columns[slices.IndexFunc(t.columns, named(name))])
	}
	return all, nil
}

func named(name string) func(column) bool { return func(c column) bool { return c.name == name } }

func (t *table) list() string {
	var names []string
	for _, c := range t.columns {
		names = append(names, c.name)
	}
	return truncate(strings.Join(names, ", "))
}
