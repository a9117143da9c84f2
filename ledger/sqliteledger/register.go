package sqliteledger

import (
	"context"
	"crypto/rand"
	"errors"
	"iter"

	"zombiezen.com/go/sqlite"

	"github.com/pawlhq/pawl/ledger"
)

// ReadRegister returns a register.
func (s *Store) ReadRegister(ctx context.Context, name string) (ledger.Register, error) {
	if err := ledger.CheckRegister(name, nil); err != nil {
		return ledger.Register{}, err
	}
	found, err := s.registers(ctx, readRegisterSQL, name)
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
	next = rand.Text()
	err = s.write(ctx, "write register", func(conn *sqlite.Conn) error {
		sql := updateRegisterSQL
		if version == "" {
			sql = insertRegisterSQL
		}
		stmt, err := conn.Prepare(sql)
		if err != nil {
			return err
		}
		stmt.BindText(1, name)
		stmt.BindText(2, next)
		stmt.BindBytes(3, value)
		if version != "" {
			stmt.BindText(4, version)
		}
		if _, err := stmt.Step(); err != nil {
			return err
		}
		if conn.Changes() == 0 {
			next = ""
		}
		return stmt.Reset()
	})
	if err == nil && next == "" {
		err = ledger.ErrRegisterChanged
	}
	return next, err
}

// RemoveRegister removes a register if it still carries the version.
func (s *Store) RemoveRegister(ctx context.Context, name, version string) error {
	if err := ledger.CheckRegister(name, nil); err != nil {
		return err
	}
	removed := false
	err := s.write(ctx, "remove register", func(conn *sqlite.Conn) error {
		stmt, err := conn.Prepare(removeRegisterSQL)
		if err != nil {
			return err
		}
		stmt.BindText(1, name)
		stmt.BindText(2, version)
		if _, err := stmt.Step(); err != nil {
			return err
		}
		removed = conn.Changes() > 0
		return stmt.Reset()
	})
	if err == nil && !removed {
		err = ledger.ErrRegisterChanged
	}
	return err
}

// ListRegisters yields registers in the order of their names. The loop's body
// may call the store.
func (s *Store) ListRegisters(ctx context.Context, prefix string) iter.Seq2[ledger.Register, error] {
	return ledger.PageRegisters(prefix, func(from string) ([]ledger.Register, error) {
		return s.registers(ctx, listRegistersSQL, from)
	})
}

// registers runs a query of one name.
func (s *Store) registers(ctx context.Context, sql, name string) (found []ledger.Register, err error) {
	err = s.read(ctx, "read registers", func(conn *sqlite.Conn) error {
		stmt, err := conn.Prepare(sql)
		if err != nil {
			return err
		}
		stmt.BindText(1, name)
		for {
			more, err := stmt.Step()
			if err != nil || !more {
				return errors.Join(err, stmt.Reset())
			}
			value := make([]byte, stmt.ColumnLen(2))
			stmt.ColumnBytes(2, value)
			found = append(found, ledger.Register{Name: stmt.ColumnText(0), Version: stmt.ColumnText(1), Value: value})
		}
	})
	return found, err
}
