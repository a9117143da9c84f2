package lock

import (
	"fmt"
	"time"

	"github.com/pawlhq/pawl/cell"
	"github.com/pawlhq/pawl/ledger"
)

// OnRegister returns the lock whose lease is a register of a ledger, for processes that share a
// ledger and no bucket. The protocol is the same as on an object. Reads and writes of the register
// replace the GET and PUT requests.
//
// The lock is as available as its ledger. A SQLite file stays locked while a process is paused in
// the middle of a write to it: no process can acquire the lock until that process continues or
// ends.
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

// Observe records the value of the lock's register from a listing. It returns the time until
// TryAcquire can acquire the lock, or 0 if the lock is free. A process can therefore watch many
// locks with one listing. A later TryAcquire counts the time since the first Observe that saw the
// current lease.
func (m *Mutex) Observe(r ledger.Register) (time.Duration, error) {
	v, err := m.parse(cell.Value{Version: r.Version, Body: r.Value})
	if err != nil {
		return 0, err
	}
	left := m.expiry(observation{v, m.clock.Now()})
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.cached.rec.State == Released && m.cached.etag != v.etag {
		m.cached = version{} // TryAcquire would start with it and forget the watched lease
	}
	return max(0, left), nil
}
