package parts

import (
	"context"
	"errors"

	"github.com/pawlhq/pawl/store"
	"github.com/pawlhq/pawl/store/memory"
)

// Memory is a ledger that ends with its process: memory.
type Memory struct{}

func parseMemory(rest, _ string) (Memory, error) {
	if rest != "" {
		return Memory{}, errors.New("has no name: write memory, with nothing after it")
	}
	return Memory{}, nil
}

// Open implements [Ledger].
func (Memory) Open(context.Context) (store.Store, error) { return memory.New(), nil }

// OpenReadOnly implements [Ledger].
func (m Memory) OpenReadOnly(ctx context.Context) (store.Store, error) { return m.Open(ctx) }

// CheckExists implements [Ledger].
func (Memory) CheckExists(context.Context) error {
	return errors.New("nobody but its own process can look into a ledger in memory: use sqlite:FILE")
}

// Describe implements [Ledger].
func (Memory) Describe() string { return "memory" }
