package pawl

import (
	"maps"
	"sync"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/worker"
)

// Memory passes what one Pawl has learned to the next one in the same process, for example which receivers
// are down. A program that creates a Pawl for each batch of messages gives all of them the same Memory,
// Ledger and Objects. The zero Memory is empty. It is safe for concurrent use.
type Memory struct {
	mu      sync.Mutex
	rows    *ledger.Rows
	objects bucket.Store
	outages engine.Outages
}

// The receiver may be nil.
func (m *Memory) load(c *Config) (*ledger.Rows, bucket.Store, engine.Outages) {
	if m == nil {
		return ledger.NewRows(c.Ledger), c.Objects, nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.rows == nil {
		m.rows, m.objects = ledger.NewRows(c.Ledger), worker.DetectDenials(c.Objects)
	}
	return m.rows, m.objects, maps.Clone(m.outages)
}

// The receiver may be nil.
func (m *Memory) save(outages engine.Outages) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.outages = outages
}
