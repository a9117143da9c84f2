package filescmd

import (
	"context"
	"sync"
	"time"

	"github.com/pawlhq/pawl/cmd/pawl/admin"
	"github.com/pawlhq/pawl/files/server"
	"github.com/pawlhq/pawl/internal/process"
	"github.com/pawlhq/pawl/store"
)

// monitor reports the health of "pawl files serve".
type monitor struct {
	server *server.Server
	index  store.Store

	mu           sync.Mutex
	turn, answer time.Time
}

const indexCheckInterval = 5 * time.Second

// checkIndex reads a record that does not exist, until ctx ends.
func (m *monitor) checkIndex(ctx context.Context) {
	for {
		m.record(&m.turn)
		bounded, cancel := context.WithTimeout(ctx, indexCheckInterval)
		if _, err := m.index.Load(bounded, []store.Key{{Space: "probe", Name: "probe"}}); err == nil {
			m.record(&m.answer)
		}
		cancel()
		if process.Sleep(ctx, indexCheckInterval) != nil {
			return
		}
	}
}

func (m *monitor) record(at *time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	*at = time.Now()
}

func (m *monitor) status() (s admin.Status) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s.CheckLoop("the check of the index", "the index", m.turn, m.answer, 0, 0)
	if !m.server.Ready() {
		s.Unready = append(s.Unready, "the API is starting or shutting down")
	}
	return s
}
