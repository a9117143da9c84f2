//go:build !linux && !darwin

package libwebp

func newMemory(limit int) (*memory, error) { return &memory{make([]byte, 0, limit)}, nil }

func (m *memory) Free() { m.bytes = nil }
