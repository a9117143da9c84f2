package pgledger

import (
	"context"
	"fmt"
)

// oldestServer is PostgreSQL 13.
const oldestServer = 130000

const serverSQL = `SELECT current_setting('server_version_num')::int, current_setting('server_encoding'),
	current_setting('transaction_read_only') = 'on'`

// prepare makes sure, step by step, that the database can serve.
func (s *Store) prepare(ctx context.Context, steps ...func(context.Context) error) error {
	bounded, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for _, step := range steps {
		if err := step(bounded); err != nil {
			return s.explainOpen(ctx, err)
		}
	}
	return nil
}

// identify refuses servers that cannot hold a ledger.
func (s *Store) identify(ctx context.Context) error {
	var version int
	var encoding string
	var readOnly bool
	err := s.pool.QueryRow(ctx, serverSQL).Scan(&version, &encoding, &readOnly)
	switch {
	case err != nil:
		return err
	case readOnly:
		return s.refuse(readOnlyWhy, nil)
	case version < oldestServer:
		return s.refuse(fmt.Sprintf("is on PostgreSQL %d: at least %d is needed", version/10000, oldestServer/10000), nil)
	case encoding != "UTF8":
		return s.refuse(fmt.Sprintf("is in a database with the encoding %s: make one with ENCODING 'UTF8'", encoding), nil)
	}
	return nil
}

const privilegesSQL = `SELECT coalesce(string_agg(p || ' on ' || t, ', ' ORDER BY t, p), '')
	FROM unnest(ARRAY['ledger', 'register']) t CROSS JOIN unnest($2::text[]) p
	WHERE NOT has_table_privilege(format('%I.%I', $1::text, t), p)`

// privileges finds at once what would otherwise fail in mid-work.
func (s *Store) privileges(ctx context.Context) error {
	return s.may(ctx, "SELECT", "INSERT", "UPDATE", "DELETE")
}

// readable is privileges for a store that only reads.
func (s *Store) readable(ctx context.Context) error { return s.may(ctx, "SELECT") }

func (s *Store) may(ctx context.Context, privileges ...string) error {
	var missing string
	if err := s.pool.QueryRow(ctx, privilegesSQL, s.name, privileges).Scan(&missing); err != nil {
		return err
	}
	if missing != "" {
		return s.refuse("lacks the privileges "+missing+": "+s.grants(), nil)
	}
	return nil
}
