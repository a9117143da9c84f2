package lock

import (
	"fmt"
	"time"

	"github.com/pawlhq/pawl/cell"
	"github.com/pawlhq/pawl/ledger"
)

// OnRegister returns the lock whose lease is a register of a ledger. While a process pauses during
// a write to a SQLite file, no other process can acquire the lock.
func OnRegister(r ledger.Registers, name string, c Config) (*Mutex, error) {
	err := ledger.CheckRegister(name, nil)
	var holder Record
	if err != nil {
		err = fmt.Errorf("%w: %w", ErrConfig, err)
	} else {
		holder, err = c.holderRecord()
	}
	if err != nil {
		return nil, fmt.Errorf("the lock on register:%s: %w", name, err)
	}
	return realEnv(nil).onRegister(r, name, holder), nil
}

func (e *env) onRegister(r ledger.Registers, name string, holder Record) *Mutex {
	return &Mutex{contender: contender{leaseCell: leaseCell{env: e, cell: ledger.Cell(r, name)}, holder: holder}}
}

// Observe records the lock's register from a listing, so that a process can watch many locks with
// one listing. It returns the time until TryAcquire can succeed, or 0 if the lock is free.
func (m *Mutex) Observe(r ledger.Register) (time.Duration, error) {
	v, err := m.parse(cell.Value{Version: r.Version, Body: r.Value})
	if err != nil {
		return 0, err
	}
	left := m.expiry(observation{v, m.clock.Now()})
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.cached.rec.State == Released && m.cached.etag != v.etag {
		m.cached = version{} // otherwise TryAcquire would forget the watched lease
	}
	return max(0, left), nil
}
