package libwebp

import "github.com/tetratelabs/wazero/experimental"

// The capacity of bytes is the limit: beyond it malloc fails. The memory never moves.
type memory struct{ bytes []byte }

// Allocate implements [experimental.MemoryAllocator].
func (m *memory) Allocate(_, _ uint64) experimental.LinearMemory { return m }

// Reallocate implements [experimental.LinearMemory].
func (m *memory) Reallocate(size uint64) []byte {
	if size > uint64(cap(m.bytes)) {
		return nil
	}
	m.bytes = m.bytes[:size]
	return m.bytes
}
