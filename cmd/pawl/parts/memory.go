package parts

import (
	"context"
	"errors"

	"github.com/pawlhq/pawl/store"
	"github.com/pawlhq/pawl/store/memory"
)

// Memory is a ledger in the memory of its process. Its configuration is the word memory.
type Memory struct{}

func parseMemory(rest, _ string) (Memory, error) {
	if rest != "" {
		return Memory{}, errors.New("takes no name: write memory")
	}
	return Memory{}, nil
}

// Open implements [Ledger].
func (Memory) Open(context.Context) (store.Store, error) { return memory.New(), nil }

// OpenReadOnly implements [Ledger].
func (m Memory) OpenReadOnly(ctx context.Context) (store.Store, error) { return m.Open(ctx) }

// CheckExists implements [Ledger].
func (Memory) CheckExists(context.Context) error {
	return errors.New("a ledger in memory is readable only in its own process: use sqlite:FILE")
}

// Describe implements [Ledger].
func (Memory) Describe() string { return "memory" }
