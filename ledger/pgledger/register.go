package pgledger

import (
	"context"
	"crypto/rand"
	"iter"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pawlhq/pawl/ledger"
)

// ReadRegister returns a register.
func (s *Store) ReadRegister(ctx context.Context, name string) (ledger.Register, error) {
	if err := ledger.CheckRegister(name, nil); err != nil {
		return ledger.Register{}, err
	}
	found, err := s.registers(ctx, s.sql.readRegister, name)
	if err != nil || len(found) == 0 {
		return ledger.Register{Name: name}, err
	}
	return found[0], nil
}

// WriteRegister writes a register if it still carries the version.
func (s *Store) WriteRegister(ctx context.Context, name, version string, value []byte) (next string, err error) {
	if err := ledger.CheckRegister(name, value); err != nil {
		return "", err
	}
	if value == nil {
		value = []byte{} // which is no NULL
	}
	next = rand.Text()
	sql, args := s.sql.insertRegister, []any{name, next, value}
	if version != "" {
		sql, args = s.sql.updateRegister, append(args, version)
	}
	if err := s.change(ctx, "write register", sql, args...); err != nil {
		return "", err
	}
	return next, nil
}

// RemoveRegister removes a register if it still carries the version.
func (s *Store) RemoveRegister(ctx context.Context, name, version string) error {
	if err := ledger.CheckRegister(name, nil); err != nil {
		return err
	}
	return s.change(ctx, "remove register", s.sql.removeRegister, name, version)
}

// change runs a statement that changes one register, if its condition holds.
func (s *Store) change(ctx context.Context, what, sql string, args ...any) error {
	changed := false
	err := s.call(ctx, what, func(ctx context.Context) error {
		q := &pgx.Batch{}
		q.Queue(settingsSQL)
		q.Queue(sql, args...).Exec(func(tag pgconn.CommandTag) error {
			changed = tag.RowsAffected() > 0
			return nil
		})
		return s.pool.SendBatch(ctx, q).Close()
	})
	if err == nil && !changed {
		err = ledger.ErrRegisterChanged
	}
	return err
}

// ListRegisters yields registers in the order of their names. The loop's body
// may call the store.
func (s *Store) ListRegisters(ctx context.Context, prefix string) iter.Seq2[ledger.Register, error] {
	return ledger.PageRegisters(prefix, func(from string) ([]ledger.Register, error) {
		return s.registers(ctx, s.sql.listRegisters, from)
	})
}

// registers runs a query of one name.
func (s *Store) registers(ctx context.Context, sql, name string) (found []ledger.Register, err error) {
	err = s.call(ctx, "read registers", func(ctx context.Context) error {
		rows, err := s.pool.Query(ctx, sql, name)
		if err == nil {
			found, err = pgx.CollectRows(rows, pgx.RowToStructByPos[ledger.Register])
		}
		return err
	})
	return found, err
}
