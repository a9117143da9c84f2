package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawlhq/pawl/store"
)

const oldestServer = 130000

const serverSQL = `SELECT current_setting('server_version_num')::int, current_setting('server_encoding'),
	current_setting('transaction_read_only') = 'on'`

func (s *Store) identify(ctx context.Context) error {
	var version int
	var encoding string
	var replica bool
	err := s.pool.QueryRow(ctx, serverSQL).Scan(&version, &encoding, &replica)
	switch {
	case err != nil:
		return err
	case replica:
		return s.unusable(readOnlyWhy, nil)
	case version < oldestServer:
		return s.unusable(fmt.Sprintf("is on PostgreSQL %d: at least %d is needed", version/10000, oldestServer/10000), nil)
	case encoding != "UTF8":
		return s.unusable(fmt.Sprintf("has the encoding %s: create a database with ENCODING 'UTF8'", encoding), nil)
	}
	return nil
}

const privilegesSQL = `SELECT coalesce(string_agg(p, ', ' ORDER BY p), '') FROM unnest($2::text[]) p
	WHERE NOT has_table_privilege(format('%I.record', $1::text), p)`

func (s *Store) writable(ctx context.Context) error {
	return s.checkPrivilegesOf(ctx, "SELECT", "INSERT", "UPDATE", "DELETE")
}

func (s *Store) readable(ctx context.Context) error { return s.checkPrivilegesOf(ctx, "SELECT") }

func (s *Store) checkPrivilegesOf(ctx context.Context, privileges ...string) error {
	var missing string
	if err := s.pool.QueryRow(ctx, privilegesSQL, s.schema, privileges).Scan(&missing); err != nil {
		return err
	}
	if missing != "" {
		return s.unusable("lacks the privileges "+missing+" on the table record: "+s.grants(), nil)
	}
	return nil
}

// Check examines a database and the clock, without changing anything. skew is the maximum
// difference between two clocks. An error means that the database cannot be examined.
func Check(ctx context.Context, url string, skew time.Duration) ([]store.Finding, error) {
	s, err := dial(ctx, url)
	if err != nil {
		return nil, err
	}
	defer func() { _ = s.Close() }() // never fails
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return nil, s.explainOpen(ctx, err)
	}
	defer conn.Release()
	var all []store.Finding
	for _, check := range []func(context.Context, *pgxpool.Conn) (store.Finding, error){
		s.checkServer, s.checkTables, s.checkPrivileges, s.checkDurability, s.checkConnections,
		func(ctx context.Context, conn *pgxpool.Conn) (store.Finding, error) {
			return s.checkClock(ctx, conn, skew)
		},
	} {
		f, err := check(ctx, conn)
		if err != nil {
			f.Problem = s.explain(ctx, f.Name, err).Error()
		}
		all = append(all, f)
	}
	return all, nil
}

func (s *Store) checkServer(ctx context.Context, conn *pgxpool.Conn) (f store.Finding, err error) {
	f.Name = "server"
	if err = conn.QueryRow(ctx, "SELECT 'PostgreSQL ' || current_setting('server_version')").Scan(&f.Value); err != nil {
		return f, err
	}
	return f, s.identify(ctx)
}

func (s *Store) checkTables(ctx context.Context, conn *pgxpool.Conn) (store.Finding, error) {
	f := store.Finding{Name: "tables"}
	_, format, err := s.format(ctx, conn)
	f.Value = fmt.Sprintf("schema %s, format %d of %d", s.schema, format, len(migrations))
	if err == nil && format < len(migrations) {
		f.Problem = `they are missing or old: Pawl creates or upgrades them at startup if its user has the privileges; otherwise run the output of "pawl ledger migrate --print"`
	}
	return f, err
}

func (s *Store) checkPrivileges(ctx context.Context, conn *pgxpool.Conn) (f store.Finding, err error) {
	f.Name = "privileges"
	if err = conn.QueryRow(ctx, "SELECT current_user").Scan(&f.Value); err != nil {
		return f, err
	}
	if _, format, err := s.format(ctx, conn); err != nil || format == 0 {
		return f, nil // checkTables reports missing tables
	}
	return f, s.writable(ctx)
}

func (s *Store) checkDurability(ctx context.Context, conn *pgxpool.Conn) (f store.Finding, err error) {
	f.Name = "durability"
	var fsync bool
	err = conn.QueryRow(ctx, `SELECT current_setting('fsync') = 'on', format('fsync=%s, synchronous_commit=%s',
		current_setting('fsync'), current_setting('synchronous_commit'))`).Scan(&fsync, &f.Value)
	if err == nil && !fsync {
		f.Problem = "acknowledged records are lost when the server's machine fails: set fsync=on"
	}
	return f, err
}

const connectionsSQL = `SELECT current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int,
	(SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend')`

func (s *Store) checkConnections(ctx context.Context, conn *pgxpool.Conn) (store.Finding, error) {
	f := store.Finding{Name: "connections"}
	var most, used int
	if err := conn.QueryRow(ctx, connectionsSQL).Scan(&most, &used); err != nil {
		return f, err
	}
	needed := int(s.pool.Config().MaxConns + s.handlers.Config().MaxConns)
	f.Value = fmt.Sprintf("%d of %d in use, a worker needs up to %d", used, most, needed)
	if most-used < needed {
		f.Problem = "too few are free for another worker: raise max_connections, lower pool_max_conns, or put a pooler in front"
	}
	return f, nil
}

// A larger skew makes takeovers of leases early or late. This costs time, but not correctness.
func (s *Store) checkClock(ctx context.Context, conn *pgxpool.Conn, skew time.Duration) (store.Finding, error) {
	f := store.Finding{Name: "clock"}
	var theirs time.Time
	asked := time.Now()
	if err := conn.QueryRow(ctx, "SELECT clock_timestamp()").Scan(&theirs); err != nil {
		return f, err
	}
	answered := time.Now()
	off := theirs.Sub(asked.Add(answered.Sub(asked) / 2))
	f.Value = fmt.Sprintf("%v off, of %v allowed", off.Round(time.Millisecond), skew)
	if off.Abs() > skew+answered.Sub(asked) {
		f.Problem = "the clocks of this machine and the server differ: synchronize them (NTP)"
	}
	return f, nil
}
