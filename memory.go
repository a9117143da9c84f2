package pawl

import (
	"maps"
	"sync"

	"github.com/pawlhq/pawl/bucket"
	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/ledger"
	"github.com/pawlhq/pawl/worker"
)

// Memory passes on what a Pawl has learned to the next one of the same process: receivers
// that are down, permissions that are missing, and pipelines that the ledger knows. A
// program that makes a Pawl for each batch of messages gives all of them the same Memory,
// Ledger and Objects. The zero Memory is empty. It is safe for concurrent use.
type Memory struct {
	mu      sync.Mutex
	rows    *ledger.Rows
	objects bucket.Store
	outages engine.Outages
}

// load returns what a new Pawl begins with. m may be nil.
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

// save keeps what a Pawl has learned. m may be nil.
func (m *Memory) save(outages engine.Outages) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.outages = outages
}
