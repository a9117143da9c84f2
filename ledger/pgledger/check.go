package pgledger

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Finding is one thing that [Check] has looked at.
type Finding struct {
	Name    string `json:"name"`
	Value   string `json:"value,omitempty"`
	Problem string `json:"problem,omitempty"` // what is wrong, and what to do; empty: nothing
}

// Check examines a database without changing it: version, tables, privileges,
// durability, clock and connections. skew is how far two clocks may be apart. An
// error says that the database cannot be examined.
func Check(ctx context.Context, url string, skew time.Duration) ([]Finding, error) {
	s, err := dial(ctx, url)
	if err != nil {
		return nil, err
	}
	defer func() { _ = s.Close() }() // never fails
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return nil, s.explainOpen(ctx, err)
	}
	defer conn.Release()
	var all []Finding
	for _, look := range []func(context.Context, *pgxpool.Conn) (Finding, error){
		s.checkServer, s.checkTables, s.checkPrivileges, s.checkDurability, s.checkConnections,
		func(ctx context.Context, conn *pgxpool.Conn) (Finding, error) { return s.checkClock(ctx, conn, skew) },
	} {
		f, err := look(ctx, conn)
		if err != nil {
			f.Problem = s.explain(ctx, f.Name, err).Error()
		}
		all = append(all, f)
	}
	return all, nil
}

func (s *Store) checkServer(ctx context.Context, conn *pgxpool.Conn) (f Finding, err error) {
	f.Name = "server"
	if err = conn.QueryRow(ctx, "SELECT 'PostgreSQL ' || current_setting('server_version')").Scan(&f.Value); err != nil {
		return f, err
	}
	return f, s.identify(ctx)
}

func (s *Store) checkTables(ctx context.Context, conn *pgxpool.Conn) (Finding, error) {
	f := Finding{Name: "tables"}
	_, format, err := s.format(ctx, conn)
	f.Value = fmt.Sprintf("schema %s, format %d of %d", s.name, format, len(migrations))
	switch {
	case err != nil:
	case format < len(migrations):
		f.Problem = `they are to be made or upgraded: Pawl does when it starts, if its user may; otherwise run the output of "pawl ledger migrate --print"`
	case format > len(migrations):
		f.Problem = "a newer Pawl has made them: upgrade this one"
	}
	return f, err
}

func (s *Store) checkPrivileges(ctx context.Context, conn *pgxpool.Conn) (f Finding, err error) {
	f.Name = "privileges"
	if err = conn.QueryRow(ctx, "SELECT current_user").Scan(&f.Value); err != nil {
		return f, err
	}
	if _, format, err := s.format(ctx, conn); err != nil || format == 0 {
		return f, err // there is nothing to have privileges on
	}
	return f, s.privileges(ctx)
}

func (s *Store) checkDurability(ctx context.Context, conn *pgxpool.Conn) (f Finding, err error) {
	f.Name = "durability"
	var fsync bool
	err = conn.QueryRow(ctx, `SELECT current_setting('fsync') = 'on', format('fsync=%s, synchronous_commit=%s',
		current_setting('fsync'), current_setting('synchronous_commit'))`).Scan(&fsync, &f.Value)
	if err == nil && !fsync {
		f.Problem = "rows that were answered for are lost when the server's machine fails: set fsync=on"
	}
	return f, err
}

const connectionsSQL = `SELECT current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int,
	(SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend')`

// checkConnections compares what is free with what one worker may take.
func (s *Store) checkConnections(ctx context.Context, conn *pgxpool.Conn) (Finding, error) {
	f := Finding{Name: "connections"}
	var most, used int
	if err := conn.QueryRow(ctx, connectionsSQL).Scan(&most, &used); err != nil {
		return f, err
	}
	handlers := int(s.effects.Config().MaxConns)
	f.Value = fmt.Sprintf("%d of %d in use, a worker takes up to %d", used, most, connections+handlers)
	if most-used < connections+handlers {
		f.Problem = "they are too few for one more worker: raise max_connections, lower pool_max_conns, or put a pooler in front"
	}
	return f, nil
}

// checkClock asks the server for its time. Where a clock is behind or ahead by more
// than the leases allow for, they are taken over too early or too late, which costs
// time and no correctness.
func (s *Store) checkClock(ctx context.Context, conn *pgxpool.Conn, skew time.Duration) (Finding, error) {
	f := Finding{Name: "clock"}
	var theirs time.Time
	asked := time.Now()
	if err := conn.QueryRow(ctx, "SELECT clock_timestamp()").Scan(&theirs); err != nil {
		return f, err
	}
	answered := time.Now()
	off := theirs.Sub(asked.Add(answered.Sub(asked) / 2))
	f.Value = fmt.Sprintf("%v off, of %v allowed", off.Round(time.Millisecond), skew)
	if off.Abs() > skew+answered.Sub(asked) {
		f.Problem = "this machine's clock and the server's are apart: synchronise them (NTP)"
	}
	return f, nil
}
