//go:build !linux && !darwin

package libwebp

// newMemory allocates the whole limit on the heap.
func newMemory(limit int) (*memory, error) { return &memory{make([]byte, 0, limit)}, nil }

// Free leaves the memory to the garbage collector.
func (m *memory) Free() { m.bytes = nil }
