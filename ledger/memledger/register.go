package memledger

import (
	"context"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/pawlhq/pawl/ledger"
)

// ReadRegister returns a register.
func (s *Store) ReadRegister(ctx context.Context, name string) (ledger.Register, error) {
	if err := ledger.CheckRegister(name, nil); err != nil {
		return ledger.Register{}, err
	}
	if ctx.Err() != nil {
		return ledger.Register{}, context.Cause(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.registers[name]
	r.Name, r.Value = name, slices.Clone(r.Value)
	return r, nil
}

// WriteRegister writes a register if it still carries the version.
func (s *Store) WriteRegister(ctx context.Context, name, version string, value []byte) (string, error) {
	if err := ledger.CheckRegister(name, value); err != nil {
		return "", err
	}
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.registers[name].Version != version {
		return "", ledger.ErrRegisterChanged
	}
	s.writes++
	next := ledger.Register{Name: name, Version: strconv.Itoa(s.writes), Value: slices.Clone(value)}
	s.registers[name] = next
	return next.Version, nil
}

// RemoveRegister removes a register if it still carries the version.
func (s *Store) RemoveRegister(ctx context.Context, name, version string) error {
	if err := ledger.CheckRegister(name, nil); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if version == "" || s.registers[name].Version != version {
		return ledger.ErrRegisterChanged
	}
	delete(s.registers, name)
	return nil
}

// ListRegisters yields the registers that are there when it begins, as they are
// when it comes to them.
func (s *Store) ListRegisters(ctx context.Context, prefix string) iter.Seq2[ledger.Register, error] {
	return func(yield func(ledger.Register, error) bool) {
		s.mu.Lock()
		names := slices.Sorted(maps.Keys(s.registers))
		s.mu.Unlock()
		for _, name := range names {
			if !strings.HasPrefix(name, prefix) {
				continue
			}
			r, err := s.ReadRegister(ctx, name)
			if err == nil && r.Version == "" {
				continue // it was removed meanwhile
			}
			if !yield(r, err) || err != nil {
				return
			}
		}
	}
}
