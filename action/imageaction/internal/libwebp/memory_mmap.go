//go:build linux || darwin

package libwebp

import "syscall"

// The system allocates a page only when libwebp first writes to it.
func newMemory(limit int) (*memory, error) {
	b, err := syscall.Mmap(-1, 0, limit, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	return &memory{b[:0]}, err
}

func (m *memory) Free() {
	if m.bytes != nil {
		_ = syscall.Munmap(m.bytes[:cap(m.bytes)]) // only another slice would fail
		m.bytes = nil
	}
}
